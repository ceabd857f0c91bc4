package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// closeGrace bounds how long Close waits for a database that does not answer.
const closeGrace = 10 * time.Second

// Options of a Store. Zero values are replaced by the defaults given.
type Options struct {
	// Format says what keys and values mean; Raw.
	Format Format
	// History is how long superseded revisions stay readable; 5 minutes. Negative: for ever.
	History time.Duration
	// Keep says which old versions of objects stay readable for longer, by Past; nil: none do.
	Keep *changelog.Keep
	// CompactEvery is the pause between two looks of the compactor; History/10 within [1s, 1m].
	CompactEvery time.Duration
	// WindowBytes bounds the recent events kept in memory for watches; 32 MiB.
	WindowBytes int
	// WindowAge is how long they are kept at least, within WindowBytes; 1 minute. They leave before they are twice as old.
	WindowAge time.Duration
	// CacheBytes bounds the values of raw keys in memory; 8 MiB. Their keys are all there.
	CacheBytes int
	// IndexBytes bounds the indexes in memory; 64 MiB. Negative: there are none.
	IndexBytes int
	// StateBytes bounds what the state of objects takes in memory: beyond it values are read from the log, and
	// keys, revisions and indexes stay. 0: there is no bound.
	StateBytes int
	// MaxBatch and MaxBatchBytes bound one transaction; 512 changes, 4 MiB.
	MaxBatch      int
	MaxBatchBytes int
	// MaxValueBytes bounds one value; 3 MiB, as kube-apiserver bounds a request's body.
	MaxValueBytes int
	// Snapshots is how many past states of one resource are kept for paginated lists; 8.
	Snapshots int
	// QueryTimeout bounds one query for the head or for rows to catch up with; 5 seconds.
	// A database that takes longer counts as unavailable.
	QueryTimeout time.Duration
	// AppendTimeout bounds one transaction until its COMMIT is sent; 15 seconds, so that a
	// lock which another replica holds for a while is not taken for a database that hangs.
	AppendTimeout time.Duration
	// Transformer changes values on their way into the log and back; nil: none does. See
	// Entry.Unreadable for values that cannot be read.
	Transformer Transformer
	// Check says what is wrong with the value of a row that comes from the log, as readers would see it but for
	// Format.Show; nil: nothing is. What is wrong is damaged (ErrUndecodable), and its entry unreadable. Changes of this
	// process are not checked. The errors go to clients and into the log, so they must not have a part of the value.
	Check func(key string, value []byte) error
	// Author is that of changes whose context does not say where they come from.
	Author changelog.Author
	// Log gets what an operator should know; nil: nothing.
	Log *slog.Logger
}

// Store serves the keys of one Log. Its methods are safe for concurrent use.
type Store struct {
	log   changelog.Log
	o     Options
	raw   bool // Options.Format is Raw
	stats counters

	state   state
	commits committer
	authors authors
	own     *changelog.Origin // of Options.Author, nil if that is empty
	brought int64             // see Brought
	tail    tail
	heads   headReader
	compact compactor
	health  health
	others  others
	cache   cache
	lender  lender
	witness witness
	lag     lag
	polls   chan struct{}           // has a token for each Poll that reads from the log
	setBack atomic.Pointer[SetBack] // the last one

	ctx       context.Context // ends when Close gives up on the database
	cancel    context.CancelFunc
	stop      chan struct{} // closed by Close when all commits are applied
	wg        sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// Open reads the whole state of log and starts the Store's goroutines. The Store owns
// log from then on and closes it; if Open fails, log is still the caller's.
func Open(ctx context.Context, log changelog.Log, o Options) (*Store, error) {
	s := newStore(log, o.withDefaults())
	if err := s.load(ctx); err != nil {
		s.cancel()
		return nil, fmt.Errorf("load state: %w", err)
	}
	var err error
	if s.brought, err = changelog.Brought(ctx, log); err != nil {
		s.cancel()
		return nil, fmt.Errorf("read what was copied: %w", err)
	}
	s.start()
	return s, nil
}

func newStore(log changelog.Log, o Options) *Store {
	s := &Store{log: log, o: o, stop: make(chan struct{}), polls: make(chan struct{}, logPolls)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	_, s.raw = o.Format.(Raw)
	s.authors.most = mostAuthors
	if o.Author != (changelog.Author{}) {
		s.own = &changelog.Origin{Author: o.Author}
	}
	s.cache.limit = o.CacheBytes
	s.lender.all = lendBytes(o.StateBytes)
	s.state.init(o, &s.cache)
	s.commits.init(o)
	s.tail.init()
	s.heads.init()
	s.others.init()
	s.compact.init()
	s.health.outage.log, s.health.condition = o.Log, log.Condition
	s.health.outage.count = &s.stats.outages
	s.health.closing = func() bool { return s.ctx.Err() != nil }
	return s
}

func (s *Store) start() {
	s.wg.Go(s.runTail)
	s.wg.Go(s.runHeads)
	s.wg.Go(s.runCompactor)
	s.wg.Go(s.runFollow)
	s.wg.Go(s.runHealth)
	s.wg.Go(s.runAging)
	if s.bounded() {
		s.wg.Go(s.runEvictor)
	}
	go s.runCommitter() // ends the tail, which Close waits for
}

// Close refuses new commits, finishes those already queued, ends all watchers with
// ErrClosed, and closes the log.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		giveUp := time.AfterFunc(closeGrace, s.cancel)
		defer giveUp.Stop()
		s.commits.close()
		<-s.tail.done
		s.state.close()
		close(s.stop)
		s.cancel()
		s.wg.Wait()
		s.closeErr = s.log.Close()
	})
	return s.closeErr
}

func (o Options) withDefaults() Options {
	orInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	if o.Format == nil {
		o.Format = Raw{}
	}
	if _, raw := o.Format.(Raw); raw {
		o.History = -1 // Store.CutTo says what is compacted
		o.Keep = nil
		o.StateBytes = 0 // their values have bounds of their own
	}
	if o.History == 0 {
		o.History = 5 * time.Minute
	}
	if o.CompactEvery <= 0 {
		o.CompactEvery = min(max(o.History/10, time.Second), time.Minute)
	}
	orInt(&o.WindowBytes, 32<<20)
	if o.WindowAge <= 0 {
		o.WindowAge = time.Minute
	}
	orInt(&o.CacheBytes, 8<<20)
	if o.IndexBytes == 0 {
		o.IndexBytes = 64 << 20
	}
	orInt(&o.MaxBatch, 512)
	orInt(&o.MaxBatchBytes, 4<<20)
	orInt(&o.MaxValueBytes, 3<<20)
	orInt(&o.Snapshots, 8)
	if o.QueryTimeout <= 0 {
		o.QueryTimeout = 5 * time.Second
	}
	if o.AppendTimeout <= 0 {
		o.AppendTimeout = 15 * time.Second
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
