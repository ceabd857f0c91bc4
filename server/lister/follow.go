package lister

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// RetryRead is the pause before the log is read again when the database is away.
const RetryRead = time.Second

// Follow calls f with every object whose key begins with resource, as a Put, then calls
// synced, then calls f with every change, until ctx ends. Controllers use it in place of an
// informer: the store has the objects already, so there is no second copy of them, and each
// change comes with the state before it.
//
// Objects that cannot be decrypted, or are damaged, are left out; f gets them as a Put when they can be read.
//
// It returns nil when ctx ends or the store closes. An error means that changes were
// lost and that what f knows must be forgotten.
func Follow(ctx context.Context, store *sqlstore.Store, resource string, synced func(), f func(*sqlstore.Event)) error {
	revision, err := Read(ctx, store, resource, f)
	if err != nil {
		return Ended(ctx, err)
	}
	return FollowFrom(ctx, store, resource, revision, synced, f)
}

// FollowFrom is Follow for a caller who knows the objects as they are at revision: f gets
// the changes after it.
func FollowFrom(ctx context.Context, store *sqlstore.Store, resource string, revision int64, synced func(), f func(*sqlstore.Event)) error {
	w, err := store.Watch(resource, resource, revision)
	if err != nil {
		return Ended(ctx, err)
	}
	defer w.Close()
	synced()
	l := follower{store: store, w: w, f: f}
	l.leaveOut(resource)
	return Ended(ctx, l.follow(ctx))
}

// Read calls f with every object whose key begins with resource, as a Put, and returns the
// revision at which they are so. Objects that cannot be decrypted are left out.
func Read(ctx context.Context, store *sqlstore.Store, resource string, f func(*sqlstore.Event)) (int64, error) {
	view := store.Current(resource)
	from, to := changelog.RangeOf(resource)
	err := view.Scan(ctx, from, to, func(e *sqlstore.Entry) bool {
		f(&sqlstore.Event{Type: sqlstore.Put, Entry: e})
		return true
	})
	if unreadable := (*sqlstore.UnreadableError)(nil); err != nil && !errors.As(err, &unreadable) {
		return 0, fmt.Errorf("read %s: %w", resource, err)
	}
	return view.Revision(), nil
}

// follower passes changes on to f.
type follower struct {
	store *sqlstore.Store
	w     *sqlstore.Watcher
	f     func(*sqlstore.Event)
	// leftOut has the keys of objects that cannot be decrypted, with what f knows of each.
	leftOut map[string]*sqlstore.Entry
}

// lookAgain is the pause between two looks whether the objects left out can be decrypted.
const lookAgain = 10 * time.Second

// leaveOut notes the objects that were left out of the state that f knows.
func (l *follower) leaveOut(resource string) {
	l.leftOut = map[string]*sqlstore.Entry{}
	var unreadable *sqlstore.UnreadableError
	if errors.As(Unreadable(l.store, resource), &unreadable) {
		for _, u := range unreadable.Objects {
			l.leftOut[u.Key] = nil
		}
	}
}

func (l *follower) follow(ctx context.Context) error {
	for {
		events, _, err := l.w.Poll(ctx)
		for _, ev := range events {
			l.pass(ev)
		}
		wait := l.w.Wait()
		if errors.Is(err, changelog.ErrUnavailable) {
			wait = nil
		} else if err != nil {
			return err
		}
		if len(l.leftOut) > 0 {
			err = l.wait(ctx, wait)
		} else {
			err = sleepUnless(ctx, wait)
		}
		if err != nil {
			return err
		}
	}
}

// pass passes a change on, if it can be decrypted.
func (l *follower) pass(ev *sqlstore.Event) {
	key := ev.Entry.Key
	known, wasOut := l.leftOut[key]
	if !wasOut {
		known = ev.Prev
	}
	if known != nil && known.Unreadable() != nil {
		known = nil
	}
	readable := ev.Entry.Unreadable() == nil
	if !readable && ev.Type == sqlstore.Put {
		l.leftOut[key] = known
		return
	}
	delete(l.leftOut, key)
	switch {
	case readable && known == ev.Prev:
		l.f(ev)
	case readable:
		l.f(&sqlstore.Event{Type: ev.Type, Entry: ev.Entry, Prev: known})
	case known != nil:
		l.f(&sqlstore.Event{Type: ev.Type, Entry: object.AtRevision(known, ev.Entry.Revision), Prev: known})
	}
}

// wait is sleepUnless, but it looks at the objects left out meanwhile.
func (l *follower) wait(ctx context.Context, ready <-chan struct{}) error {
	again := lookAgain
	if ready == nil {
		again = RetryRead
	}
	timer := time.NewTimer(again)
	defer timer.Stop()
	select {
	case <-ready: // never, if nil
	case <-timer.C:
		l.takeIn()
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// takeIn passes on the objects left out that can be decrypted now.
func (l *follower) takeIn() {
	for key, known := range l.leftOut {
		if e := l.store.Get(key); e != nil && e.Unreadable() == nil {
			delete(l.leftOut, key)
			l.f(&sqlstore.Event{Type: sqlstore.Put, Entry: e, Prev: known})
		}
	}
}

// sleepUnless waits for ready, or for RetryRead if ready is nil.
func sleepUnless(ctx context.Context, ready <-chan struct{}) error {
	if ready == nil {
		return sleep.For(ctx, RetryRead)
	}
	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended returns nil for an error that a stop has caused: ctx has ended, or the store is closed.
func Ended(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, changelog.ErrClosed) {
		return nil
	}
	return err
}
