package etcd

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

const (
	// leasePoll is how long the lessor sleeps at most while there are leases, or may be. It is at
	// most minTTL, so that it need not hear of every lease that is granted here or elsewhere.
	leasePoll = 2 * time.Second
	// beatEvery is how often it is noted that somebody watches over the leases. When nobody did for
	// beatMost, leases expire later by that time.
	beatEvery = 2 * time.Second
	beatMost  = 5 * time.Second

	leaseRetry   = time.Second           // after an error
	expireMost   = 1000                  // leases asked for at once
	expireAtOnce = 64                    // transactions that share commits
	lastBeatWait = 2 * time.Second       // for the database when the server stops
	expirePause  = 20 * time.Millisecond // after others have revoked all that was asked for
	beatTimeout  = 15 * time.Second      // of one statement
	idleForever  = 24 * 365 * time.Hour  // nothing comes that does not wake
)

// lessor revokes leases that have expired. Every member does, and which one comes first is decided
// under the write lock of the log.
type lessor struct {
	exclusive bool
	wake      chan struct{}
	idle      atomic.Bool // it sleeps until a lease is granted here

	mu     sync.Mutex
	beaten time.Time // when the last beat ended; zero before the first
}

func (l *lessor) init(exclusive bool) { l.exclusive, l.wake = exclusive, make(chan struct{}, 1) }

// granted says that there is a lease.
func (l *lessor) granted() {
	if !l.idle.Load() {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// runLessor revokes what expires until ctx ends.
func (s *Server) runLessor(ctx context.Context) {
	trouble := failures{what: "revoking leases that have expired"}
	for {
		wait, err := s.revokeExpired(ctx)
		trouble.note(s, ctx, err)
		if err != nil {
			wait = leaseRetry
		}
		if sleep.Unless(ctx, wait, s.lessor.wake) != nil {
			break
		}
		s.lessor.idle.Store(false)
	}
	// So that only the time without a server does not count.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastBeatWait)
	defer cancel()
	if _, next, err := s.store.Keys().Expired(ctx, 1); err == nil && next >= 0 {
		_, _ = s.store.Keys().Beat(ctx, beatMost.Milliseconds())
	}
}

// revokeExpired revokes the leases that have expired and returns how long to wait for the next.
func (s *Server) revokeExpired(ctx context.Context) (wait time.Duration, err error) {
	for {
		// Set before the question: a lease that is granted after it wakes.
		s.lessor.idle.Store(s.lessor.exclusive)
		_, next, err := s.store.Keys().Expired(ctx, 1)
		if err != nil {
			return 0, err
		}
		if next < 0 {
			return s.lessor.idleFor(), nil
		}
		s.lessor.idle.Store(false)
		// Before anything expires, also if that was done a moment ago: the clock may have leapt ahead since.
		if err := s.beat(ctx, next == 0); err != nil {
			return 0, err
		}
		// Asked after the beat, by which leases may have been given more time.
		ids, next, err := s.store.Keys().Expired(ctx, expireMost)
		if err != nil {
			return 0, err
		}
		if len(ids) == 0 {
			return min(leasePoll, max(time.Duration(next)*time.Millisecond, time.Millisecond)), nil
		}
		if err := s.expire(ctx, ids); err != nil {
			return 0, err
		}
		if err := sleep.For(ctx, expirePause); err != nil {
			return 0, err
		}
	}
}

func (l *lessor) idleFor() time.Duration {
	if l.exclusive {
		return idleForever
	}
	return leasePoll
}

// expire revokes those of the leases that are there and have expired by now. Each is a transaction,
// and thus a revision, of its own, as in etcd.
func (s *Server) expire(ctx context.Context, ids []int64) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(expireAtOnce)
	for _, id := range ids {
		group.Go(func() error { return s.expireOne(ctx, id) })
	}
	return group.Wait()
}

func (s *Server) expireOne(ctx context.Context, id int64) error {
	revoked := false
	_, err := s.store.Keys().Do(ctx, sqlstore.Transaction{Leases: []int64{id}, Run: func(tx *sqlstore.Tx) error {
		l, ok := tx.Lease(id)
		if revoked = ok && l.Expires <= tx.Now(); revoked {
			tx.Revoke(id)
		}
		return nil
	}})
	if err == nil && revoked {
		s.metrics.expired.Inc()
		s.metrics.revoked.Inc()
	}
	return err
}

// watchOver notes that a server watches over the leases, if that was not noted a moment ago. It
// comes before everything that depends on when leases expire: after a start, they must have got
// the time back in which no server ran.
func (s *Server) watchOver(ctx context.Context) error { return s.beat(ctx, false) }

// beat is watchOver, which with now also notes it if that was done a moment ago.
func (s *Server) beat(ctx context.Context, now bool) error {
	l := &s.lessor
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now && !l.beaten.IsZero() && time.Since(l.beaten) < beatEvery {
		return nil
	}
	most := beatMost
	if l.exclusive && l.beaten.IsZero() {
		most = 0 // until now nobody can have watched
	}
	ctx, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	shifted, err := s.store.Keys().Beat(ctx, most.Milliseconds())
	if err != nil {
		return err
	}
	l.beaten = time.Now()
	if shifted != 0 {
		s.o.Log.Debug("leases expire later by the time that no server watched over them, or that the clock was set by", "time", time.Duration(shifted)*time.Millisecond)
	}
	return nil
}
