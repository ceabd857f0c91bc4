package lister

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

const followed = "/registry/core/configmaps/"

func openStore(t *testing.T, o sqlstore.Options) *sqlstore.Store {
	t.Helper()
	log, err := dialects.Open(t.Context(), "sqlite://:memory:", dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := object.Open(t.Context(), log, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func write(t *testing.T, store *sqlstore.Store, name string, remove bool) {
	t.Helper()
	value := `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"` + name + `"}}`
	c := sqlstore.Change{Key: followed + "default/" + name, Value: []byte(value), Delete: remove}
	if e := store.Get(c.Key); e != nil {
		c.Expect = e.Revision
	}
	if _, err := store.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func describe(ev *sqlstore.Event) string {
	verb := "add"
	if ev.Type == sqlstore.Delete {
		verb = "delete"
	} else if ev.Prev != nil {
		verb = "update"
	}
	return verb + " " + ev.Entry.Key[len(followed):]
}

func TestFollow(t *testing.T) {
	store := openStore(t, sqlstore.Options{})
	write(t, store, "a", false)
	write(t, store, "b", false)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var got []string
	synced := func() {
		got = append(got, "synced")
		write(t, store, "c", false)
		write(t, store, "a", false)
		write(t, store, "b", true)
	}
	err := Follow(ctx, store, followed, synced, func(ev *sqlstore.Event) {
		got = append(got, describe(ev))
		if ev.Type == sqlstore.Delete {
			cancel()
		}
	})
	if err != nil {
		t.Error(err)
	}
	want := []string{"add default/a", "add default/b", "synced", "add default/c", "update default/a", "delete default/b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFollowEndsWithStore(t *testing.T) {
	store := openStore(t, sqlstore.Options{})
	if err := Follow(t.Context(), store, followed, func() { go store.Close() }, func(*sqlstore.Event) {}); err != nil {
		t.Error(err)
	}
}

// One that is so slow that its changes are compacted away is told so.
func TestFollowLosesChanges(t *testing.T) {
	store := openStore(t, sqlstore.Options{WindowBytes: 1})
	err := Follow(t.Context(), store, followed, func() {
		for i := range 50 {
			write(t, store, fmt.Sprint("x", i), false)
		}
		if err := store.CompactTo(t.Context(), store.Revision()-1); err != nil {
			t.Fatal(err)
		}
	}, func(*sqlstore.Event) {})
	if !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("error %v, want %v", err, changelog.ErrCompacted)
	}
}
