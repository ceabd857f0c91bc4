package sqlstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
)

func TestWaitAndSync(t *testing.T) {
	s := newStore(t, Options{})
	a := create(t, s, maps+"ns/a")
	if r, err := s.Sync(t.Context()); err != nil || r != a.Revision {
		t.Fatalf("sync: %d, %v", r, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := s.Wait(ctx, a.Revision+1); !errors.Is(err, ErrFuture) {
		t.Fatalf("wait for the future: %v", err)
	}
	done := make(chan error)
	go func() { done <- s.Wait(context.Background(), a.Revision+1) }()
	create(t, s, maps+"ns/b")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}
