package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore"
)

// retryRead is the pause before the log is read again when the database is away.
const retryRead = time.Second

// follow gives f every object whose key begins with resource, as a Put, then calls
// synced, then gives f every change, until ctx ends. Controllers use it in place of an
// informer: the store has the objects already, so there is no second copy of them, and a
// change comes with the state before it.
//
// It returns nil when ctx ends or the store closes. An error means that changes were
// lost and that what f knows must be forgotten.
func follow(ctx context.Context, store *sqlstore.Store, resource string, synced func(), f func(*sqlstore.Event)) error {
	revision, err := readCurrent(ctx, store, resource, f)
	if err != nil {
		return endOf(ctx, err)
	}
	w, err := store.Watch(resource, resource, revision)
	if err != nil {
		return endOf(ctx, err)
	}
	defer w.Close()
	synced()
	return endOf(ctx, followChanges(ctx, w, f))
}

func readCurrent(ctx context.Context, store *sqlstore.Store, resource string, f func(*sqlstore.Event)) (int64, error) {
	view := store.Current(resource)
	from, to := sqlstore.RangeOf(resource)
	err := view.Scan(ctx, from, to, func(e *sqlstore.Entry) bool {
		f(&sqlstore.Event{Type: sqlstore.Put, Entry: e})
		return true
	})
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", resource, err)
	}
	return view.Revision(), nil
}

func followChanges(ctx context.Context, w *sqlstore.Watcher, f func(*sqlstore.Event)) error {
	for {
		events, _, err := w.Poll(ctx)
		for _, ev := range events {
			f(ev)
		}
		wait := w.Wait()
		if errors.Is(err, sqlstore.ErrUnavailable) {
			wait = nil
		} else if err != nil {
			return err
		}
		if err := sleepUnless(ctx, wait); err != nil {
			return err
		}
	}
}

// sleepUnless waits for ready, or for a while if that is nil.
func sleepUnless(ctx context.Context, ready <-chan struct{}) error {
	if ready != nil {
		select {
		case <-ready:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return pauseFor(ctx, retryRead)
}

// pauseFor waits, unless ctx ends before.
func pauseFor(ctx context.Context, pause time.Duration) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// endOf takes an error that comes of stopping for none.
func endOf(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, sqlstore.ErrClosed) {
		return nil
	}
	return err
}
