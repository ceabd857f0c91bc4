package sqlstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
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
	// Retention says which old versions of objects stay readable for longer, by Past; nil: none do.
	Retention *changelog.Retention
	// RetentionBytes bounds the keys and values of old versions that Retention keeps: beyond it those go that would
	// go first anyway. 0: there is no bound. BoundByShare: see there.
	RetentionBytes int64
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

// Store serves the keys of one Log. Its methods are safe for concurrent use. Each of its parts has its own fields, and
// pointers to the parts that it needs.
type Store struct {
	*shared

	state    state
	cache    cache
	lender   lender
	lag      lag
	hints    hints
	pipe     pipe
	witness  witness
	health   health
	authors  authors
	others   Others
	values   *values // with its address Current would be too long to be inlined, and would allocate each view
	heads    headReader
	loader   loader
	setBacks setBacks
	tail     tail
	commits  committer
	objects  objects
	keys     Keys
	compact  compactor

	brought int64 // see Brought

	wg        sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// Revision returns the newest revision that reads see.
func (s *Store) Revision() int64 { return s.state.applied.Load() }

// Floor returns the compacted revision as far as this Store knows it.
func (s *Store) Floor() int64 { return s.state.floor.Load() }

// Open reads the whole state of log and starts the Store's goroutines. The Store owns
// log from then on and closes it; if Open fails, log is still the caller's.
func Open(ctx context.Context, log changelog.Log, o Options) (*Store, error) {
	s := newStore(log, o.withDefaults())
	if err := s.loader.load(ctx); err != nil {
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
	s := &Store{shared: &shared{log: log, o: o, stop: make(chan struct{})}, values: new(values)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.compact.init()
	s.connect()
	if _, raw := o.Format.(Raw); raw {
		s.useKeys()
	} else {
		s.useObjects()
	}
	o = s.o
	s.authors.most = mostAuthors
	if o.Author != (changelog.Author{}) {
		s.authors.own = &changelog.Origin{Author: o.Author}
	}
	s.cache.limit = o.CacheBytes
	s.lender.all = lendBytes(o.StateBytes)
	s.state.init(o, &s.cache)
	s.pipe = newPipe()
	s.hints.wake = make(chan struct{}, 1)
	s.tail.done = make(chan struct{})
	s.values.polls = make(chan struct{}, logPolls)
	s.commits.init(o)
	s.heads.init()
	s.others.init()
	s.health.outage.log, s.health.outage.count = o.Log, &s.stats.outages
	return s
}

// connect gives each part the ones that it needs. Those above are not known to those below, but for the face.
func (s *Store) connect() {
	s.witness.shared, s.witness.state = s.shared, &s.state
	s.health.shared = s.shared
	s.authors.shared = s.shared
	o := &s.others
	o.shared, o.state, o.hints = s.shared, &s.state, &s.hints
	v := s.values
	v.shared, v.state, v.cache = s.shared, &s.state, &s.cache
	h := &s.heads
	h.shared, h.state, h.hints, h.lag, h.health = s.shared, &s.state, &s.hints, &s.lag, &s.health
	l := &s.loader
	l.shared, l.state, l.values, l.witness, l.authors = s.shared, &s.state, v, &s.witness, &s.authors
	sb := &s.setBacks
	sb.shared, sb.state, sb.hints, sb.witness, sb.authors, sb.loader = s.shared, &s.state, &s.hints, &s.witness, &s.authors, l
	s.compact.shared, s.compact.state = s.shared, &s.state

	t := &s.tail
	t.shared, t.state, t.values, t.hints, t.pipe, t.lag = s.shared, &s.state, v, &s.hints, &s.pipe, &s.lag
	t.witness, t.health, t.loader, t.setBacks, t.others = &s.witness, &s.health, l, sb, o
	c := &s.commits
	c.shared, c.health, c.heads, c.hints = s.shared, &s.health, h, &s.hints
	c.witness, c.authors, c.pipe = &s.witness, &s.authors, &s.pipe

	ob := &s.objects
	ob.shared, ob.state, ob.values, ob.authors, ob.setBacks = s.shared, &s.state, v, &s.authors, sb
	ob.commits, ob.compact = c, &s.compact
	k := &s.keys
	k.shared, k.state, k.cache, k.values, k.hints, k.heads = s.shared, &s.state, &s.cache, v, &s.hints, h
	k.setBacks, k.commits, k.compact = sb, c, &s.compact
}

func (s *Store) start() {
	s.wg.Go(s.tail.run)
	s.wg.Go(s.heads.run)
	s.wg.Go(s.compact.run)
	s.wg.Go(s.others.run)
	s.wg.Go(s.health.run)
	s.wg.Go(func() { s.state.runAging(s.o.WindowAge, s.stop) })
	if s.state.bounded() {
		s.wg.Go(func() { s.state.runEvictor(s.stop) })
	}
	go s.commits.run() // ends the tail, which Close waits for
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
