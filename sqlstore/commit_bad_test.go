package sqlstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestUnknownOutcome(t *testing.T) {
	for name, f := range map[string]fault{"lost": lost, "persisted": persisted} {
		t.Run(name, func(t *testing.T) {
			s, log := newFaultyStore(t, Options{})
			w, err := s.Watch(maps, maps, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			create(t, s, maps+"ns/a")
			log.set(always(f))
			_, err = s.Commit(t.Context(), Change{Key: maps + "ns/b", Value: value("b", 0)})
			if !errors.Is(err, changelog.ErrUnknown) || s.Healthy() == nil {
				t.Fatalf("commit: %v; healthy: %v", err, s.Healthy())
			}
			log.set(nil)
			// Nothing but a read: it must know what became of the commit.
			if _, err := s.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if there := s.Get(maps+"ns/b") != nil; there != (f == persisted) {
				t.Errorf("after Sync, b is there: %v", there)
			}
			c := create(t, s, maps+"ns/c")
			if err := s.Healthy(); err != nil {
				t.Errorf("healthy after a commit: %v", err)
			}
			if n := len(poll(t, w, c.Revision)); n != 2+int(f-lost) {
				t.Errorf("%d events", n)
			}
		})
	}
}

// TestUnknownIsReadAtOnce checks that a change whose COMMIT failed, and which was written
// all the same, becomes visible though no caller asks.
func TestUnknownIsReadAtOnce(t *testing.T) {
	s, log := newFaultyStore(t, Options{})
	log.set(always(persisted))
	if _, err := s.Commit(t.Context(), Change{Key: maps + "ns/a", Value: value("a", 0)}); !errors.Is(err, changelog.ErrUnknown) {
		t.Fatalf("commit: %v", err)
	}
	if err := s.Wait(t.Context(), 1); err != nil || s.Get(maps+"ns/a") == nil {
		t.Errorf("it is there: %v, %v", s.Get(maps+"ns/a"), err)
	}
}

func TestContextEndsInTheQueue(t *testing.T) {
	s, log := newFaultyStore(t, Options{})
	release, entered := make(chan struct{}), make(chan struct{}, 10)
	log.set(func([]changelog.Change) fault { entered <- struct{}{}; <-release; return works })
	first := make(chan error, 1)
	go func() {
		_, err := s.Commit(context.Background(), Change{Key: maps + "ns/a", Value: value("a", 0)})
		first <- err
	}()
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	_, err := s.Commit(ctx, Change{Key: maps + "ns/b", Value: value("b", 0)})
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, changelog.ErrUnknown) {
		t.Errorf("withdrawn: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Fatal(err)
	}
	create(t, s, maps+"ns/c")
	if s.Get(maps+"ns/b") != nil {
		t.Error("a withdrawn change was written")
	}
}

func TestContextEndsInTheTransaction(t *testing.T) {
	s, log := newFaultyStore(t, Options{})
	release := make(chan struct{})
	log.set(func([]changelog.Change) fault { <-release; return works })
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() {
		_, err := s.Commit(ctx, Change{Key: maps + "ns/a", Value: value("a", 0)})
		result <- err
	}()
	for s.Queued() > 0 || !s.Committing() {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-result; !errors.Is(err, changelog.ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("abandoned: %v", err)
	}
	close(release)
	if err := s.Wait(t.Context(), 1); err != nil || s.Get(maps+"ns/a") == nil {
		t.Errorf("the abandoned commit went on: %v", err)
	}
}
