package lister

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/sqlite"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// seal hides values, and shows them only while it is open.
type seal struct{ open atomic.Bool }

var sealed = []byte("sealed:")

func (s *seal) ToStorage(_ context.Context, _ string, value []byte) ([]byte, error) {
	return append(bytes.Clone(sealed), value...), nil
}

func (s *seal) FromStorage(_ context.Context, _ string, stored []byte) ([]byte, bool, error) {
	if !s.open.Load() {
		return nil, false, errors.New("sealed")
	}
	return bytes.TrimPrefix(stored, sealed), false, nil
}

// TestFollowUnreadable follows objects that cannot be decrypted at first: they are left out, and
// come when they can be.
func TestFollowUnreadable(t *testing.T) {
	t.Parallel()
	s, path := &seal{}, t.TempDir()+"/db"
	s.open.Store(true)
	openSealed := func() *sqlstore.Store {
		log, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		store, err := object.Open(t.Context(), log, sqlstore.Options{Transformer: s})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		return store
	}
	store := openSealed()
	for _, name := range []string{"one", "two"} {
		put(t, store, "a", name, configMap("a", name))
	}
	store.Close()
	s.open.Store(false)
	store = openSealed()
	if Unreadable(store, followed) == nil {
		t.Error("all can be read")
	}
	events := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- Follow(ctx, store, followed, func() { events <- "synced" }, func(ev *sqlstore.Event) {
			events <- fmt.Sprint(ev.Type, " ", ev.Entry.Key[len(followed):], " ", ev.Prev != nil)
		})
	}()
	next := func(want string) {
		t.Helper()
		select {
		case got := <-events:
			if got != want {
				t.Errorf("event %q, want %q", got, want)
			}
		case <-time.After(12 * lookAgain):
			t.Fatalf("no event, want %q", want)
		}
	}
	next("synced")
	put(t, store, "a", "three", configMap("a", "three")) // this process knows what it writes
	next("0 a/three false")
	// One of those that are left out is deleted: nobody knew it.
	if err := store.End(t.Context(), store.Get(followed+"a/two")); err != nil {
		t.Fatal(err)
	}
	s.open.Store(true)
	next("0 a/one false")
	if Unreadable(store, followed) != nil {
		t.Error("some cannot be read")
	}
	put(t, store, "a", "one", configMap("a", "one"))
	next("0 a/one true")
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
