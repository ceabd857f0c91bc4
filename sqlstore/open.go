package sqlstore

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// closeGrace bounds how long Close waits for a database that does not answer.
const closeGrace = 10 * time.Second

// Store serves the objects of one Log. Its methods are safe for concurrent use.
type Store struct {
	log   Log
	o     Options
	stats counters

	state   state
	commits committer
	tail    tail
	heads   headReader
	compact compactor
	health  health

	ctx       context.Context // ends when Close gives up on the database
	cancel    context.CancelFunc
	stop      chan struct{} // closed by Close when all commits are applied
	wg        sync.WaitGroup
	closeOnce sync.Once
	closeErr  error
}

// Open reads the whole state of log and starts the Store's goroutines. The Store owns
// log from then on and closes it; if Open fails, log is still the caller's.
func Open(ctx context.Context, log Log, o Options) (*Store, error) {
	s := newStore(log, o.withDefaults())
	if err := s.load(ctx); err != nil {
		s.cancel()
		return nil, fmt.Errorf("load state: %w", err)
	}
	s.start()
	return s, nil
}

func newStore(log Log, o Options) *Store {
	s := &Store{log: log, o: o, stop: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.state.init(o)
	s.commits.init(o)
	s.tail.init()
	s.heads.init()
	s.compact.init()
	return s
}

func (s *Store) start() {
	s.wg.Go(s.runTail)
	s.wg.Go(s.runHeads)
	s.wg.Go(s.runCompactor)
	s.wg.Go(s.runFollow)
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
	if o.History == 0 {
		o.History = 5 * time.Minute
	}
	if o.CompactEvery <= 0 {
		o.CompactEvery = min(max(o.History/10, time.Second), time.Minute)
	}
	orInt(&o.WindowBytes, 32<<20)
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
	if o.Logf == nil {
		o.Logf = func(string, ...any) {}
	}
	return o
}
