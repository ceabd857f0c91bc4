package cluster

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

var eventPrefix = object.Prefix("", "events") // of both groups' events

const (
	// expireAtOnce is the number of deletes that share transactions: few enough that other writes do not wait
	// for long.
	expireAtOnce = 64
	// expireEvery is the shortest pause between two rounds, so that events which expire one by one share a
	// transaction.
	expireEvery = time.Second
)

// expireEvents deletes each Event when its last change is older than ttl, until ctx ends. As with
// kube-apiserver's --event-ttl, whose keys expire in etcd, finalizers do not delay it, and watches get
// DELETED events. It never deletes an event that has changed since, because each delete expects the expired
// revision.
//
// Every replica of a shared database may run it: the first replica deletes the event, and the others find
// that it is gone. The cost is proportional to the Events that are written and that expire. It reads no other
// objects and runs no SQL except the deletes.
func expireEvents(ctx context.Context, store *sqlstore.Store, ttl time.Duration, logger *slog.Logger) {
	for ctx.Err() == nil {
		x := &expiry{store: store, ttl: ttl, added: make(chan struct{}, 1)}
		if err := x.run(ctx); err != nil {
			logger.Warn("changes of events were lost; reading anew", "err", err)
			_ = sleep.For(ctx, lister.RetryRead)
		}
	}
}

// expiry holds the changes of events, sorted by age.
type expiry struct {
	store *sqlstore.Store
	ttl   time.Duration
	added chan struct{} // has a token when changes has become non-empty

	mu      sync.Mutex
	changes []aged // oldest first, including superseded ones; guarded by mu
}

// aged is one write of an event.
type aged struct {
	key      string
	revision int64
	at       int64 // Unix milliseconds
}

func byRevision(a, b aged) int { return cmp.Compare(a.revision, b.revision) }

// run runs until ctx ends or changes are lost.
func (x *expiry) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	var lost error
	following.Go(func() {
		defer cancel()
		lost = x.follow(ctx)
	})
	for ctx.Err() == nil {
		x.wait(ctx, x.expire(ctx, time.Now()))
	}
	cancel()
	following.Wait()
	return lost
}

// follow adds the stored events in the order of their age, and then each change.
func (x *expiry) follow(ctx context.Context) error {
	var there []aged
	synced := false
	return lister.Follow(ctx, x.store, eventPrefix, func() {
		slices.SortFunc(there, byRevision)
		synced = true
		x.add(there...)
		there = nil
	}, func(ev *sqlstore.Event) {
		c := aged{ev.Entry.Key, ev.Entry.Revision, ev.Entry.At}
		switch {
		case ev.Type == sqlstore.Delete:
		case synced:
			x.add(c)
		default:
			there = append(there, c)
		}
	})
}

func (x *expiry) add(changes ...aged) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.changes = append(x.changes, changes...)
	if len(x.changes) > 0 {
		select {
		case x.added <- struct{}{}:
		default:
		}
	}
}

// wait waits until the next event may expire; with pause 0, until there is an event.
func (x *expiry) wait(ctx context.Context, pause time.Duration) {
	if pause == 0 {
		select {
		case <-x.added:
			return
		case <-ctx.Done():
			return
		}
	}
	_ = sleep.For(ctx, pause)
}

// expire deletes the events that are older than ttl at now, and returns the pause before the next round; 0 if
// there are no events.
func (x *expiry) expire(ctx context.Context, now time.Time) time.Duration {
	before := now.Add(-x.ttl).UnixMilli()
	for ctx.Err() == nil {
		old := x.take(before)
		if len(old) == 0 {
			break
		}
		if kept := x.delete(ctx, old); len(kept) > 0 {
			x.giveBack(kept)
			return lister.RetryRead
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.changes) == 0 {
		return 0
	}
	return max(time.UnixMilli(x.changes[0].at).Add(x.ttl).Sub(now), expireEvery)
}

// take removes from the queue the next changes that are older than before, at most expireAtOnce of them. It
// skips events that have changed again or are gone.
func (x *expiry) take(before int64) (old []aged) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := 0
	for n < len(x.changes) && x.changes[n].at < before && len(old) < expireAtOnce {
		c := x.changes[n]
		if e := x.store.Get(c.key); e != nil && e.Revision == c.revision {
			old = append(old, c)
		}
		n++
	}
	if x.changes = x.changes[n:]; len(x.changes) == 0 {
		x.changes = nil
	}
	return old
}

// delete deletes events and returns those to try again because the database was unavailable. If the outcome
// of a commit is unknown, the next try finds out whether the event is gone.
func (x *expiry) delete(ctx context.Context, old []aged) (kept []aged) {
	var mu sync.Mutex
	var group errgroup.Group
	for _, c := range old {
		group.Go(func() error {
			if err := x.deleteOne(ctx, c); err != nil {
				mu.Lock()
				defer mu.Unlock()
				kept = append(kept, c)
			}
			return nil
		})
	}
	_ = group.Wait()
	return kept
}

func (x *expiry) deleteOne(ctx context.Context, c aged) error {
	e := x.store.Get(c.key)
	if e == nil || e.Revision != c.revision {
		return nil
	}
	return x.store.End(ctx, e)
}

func (x *expiry) giveBack(kept []aged) {
	slices.SortFunc(kept, byRevision)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.changes = append(kept, x.changes...)
}
