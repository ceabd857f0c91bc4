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
	// leasePoll is the longest sleep of the lessor while there are or may be leases. It is at most minTTL, so
	// that the lessor need not be notified of every lease that is granted here or elsewhere.
	leasePoll = 2 * time.Second
	// beatEvery is the interval of heartbeats, which record that a server watches over the leases. After a
	// pause longer than beatMost, leases expire later by the length of the pause.
	beatEvery = 2 * time.Second
	beatMost  = 5 * time.Second

	leaseRetry   = time.Second           // after an error
	expireMost   = 1000                  // expired leases in one query
	expireAtOnce = 64                    // revocations that run at the same time and share commits
	lastBeatWait = 2 * time.Second       // the longest last heartbeat when the server stops
	expirePause  = 20 * time.Millisecond // pause if other members have revoked all of them
	beatTimeout  = 15 * time.Second      // the longest time for one heartbeat
	idleForever  = 24 * 365 * time.Hour  // an event wakes the lessor before
)

// lessor revokes expired leases. Every member runs one; the write lock of the log decides which of them is
// first.
type lessor struct {
	exclusive bool
	wake      chan struct{}
	idle      atomic.Bool // the lessor sleeps until a lease is granted here

	mu     sync.Mutex
	beaten time.Time // the end of the last heartbeat; zero before the first
}

func (l *lessor) init(exclusive bool) { l.exclusive, l.wake = exclusive, make(chan struct{}, 1) }

// granted tells the lessor that a lease was granted.
func (l *lessor) granted() {
	if !l.idle.Load() {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// runLessor revokes expired leases until ctx ends.
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
	// The last heartbeat, so that only the time without a server does not count.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastBeatWait)
	defer cancel()
	if _, next, err := s.store.Keys().Expired(ctx, 1); err == nil && next >= 0 {
		_, _ = s.store.Keys().Beat(ctx, beatMost.Milliseconds())
	}
}

// revokeExpired revokes the expired leases, and returns how long to wait for the next.
func (s *Server) revokeExpired(ctx context.Context) (wait time.Duration, err error) {
	for {
		// This is set before the query, so that a lease that is granted after the query wakes the lessor.
		s.lessor.idle.Store(s.lessor.exclusive)
		_, next, err := s.store.Keys().Expired(ctx, 1)
		if err != nil {
			return 0, err
		}
		if next < 0 {
			return s.lessor.idleFor(), nil
		}
		s.lessor.idle.Store(false)
		// A heartbeat comes before anything expires, even if there was one a moment ago: the clock may have
		// leapt ahead since.
		if err := s.beat(ctx, next == 0); err != nil {
			return 0, err
		}
		// The query follows the heartbeat, which may have given leases more time.
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

// expire revokes those of the leases that still exist and have expired. As in etcd, each revocation is a
// transaction, and so a revision, of its own.
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

// ensureBeat records a heartbeat if the last one is not recent. It precedes everything that depends on when
// leases expire: after a start, leases must first get back the time in which no server ran.
func (s *Server) ensureBeat(ctx context.Context) error { return s.beat(ctx, false) }

// beat is ensureBeat, or with now, a heartbeat in any case.
func (s *Server) beat(ctx context.Context, now bool) error {
	l := &s.lessor
	l.mu.Lock()
	defer l.mu.Unlock()
	if !now && !l.beaten.IsZero() && time.Since(l.beaten) < beatEvery {
		return nil
	}
	most := beatMost
	if l.exclusive && l.beaten.IsZero() {
		most = 0 // the database was not served until now
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
