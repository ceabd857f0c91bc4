package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	. "github.com/plinth-io/plinth/sqlstore"
)

func TestCommitAndGet(t *testing.T) {
	s := newStore(t, Options{})
	a := create(t, s, maps+"ns/a")
	if got := s.Get(a.Key); got != a {
		t.Fatalf("got %v, want the entry that Commit returned", got)
	}
	if a.Revision != a.CreateRevision || !strings.Contains(string(a.Value), fmt.Sprintf(`"resourceVersion":"%d"`, a.Revision)) {
		t.Fatalf("entry %+v %s", a, a.Value)
	}
	b := commit(t, s, Change{Key: a.Key, Expect: a.Revision, Value: value(a.Key, 1)})
	if b.Revision <= a.Revision || b.CreateRevision != a.Revision {
		t.Fatalf("update of %+v made %+v", a, b)
	}
	gone := commit(t, s, Change{Key: a.Key, Expect: b.Revision, Delete: true, Value: value(a.Key, 1)})
	if s.Get(a.Key) != nil {
		t.Fatal("deleted key is still there")
	}
	if again := create(t, s, a.Key); again.CreateRevision != again.Revision || again.Revision <= gone.Revision {
		t.Fatalf("created again: %+v", again)
	}
}

func TestConflicts(t *testing.T) {
	s := newStore(t, Options{})
	a := create(t, s, maps+"ns/a")
	b := commit(t, s, Change{Key: a.Key, Expect: a.Revision, Value: value(a.Key, 1)})
	for _, c := range []Change{
		{Key: a.Key},                         // exists
		{Key: a.Key, Expect: a.Revision},     // replaced
		{Key: a.Key, Expect: b.Revision + 7}, // never was
		{Key: a.Key, Expect: a.Revision, Delete: true},
	} {
		c.Value = value(a.Key, 2)
		_, err := s.Commit(context.Background(), c)
		var conflict *ConflictError
		if !errors.As(err, &conflict) || conflict.Current != b || conflict.Expect != c.Expect {
			t.Errorf("expecting %d: %v", c.Expect, err)
		}
	}
	_, err := s.Commit(context.Background(), Change{Key: maps + "ns/b", Expect: a.Revision, Value: value("b", 0)})
	var conflict *ConflictError
	if !errors.As(err, &conflict) || conflict.Current != nil {
		t.Errorf("update of an absent key: %v", err)
	}
}

// End deletes an object that is as it was read, and leaves one that has changed.
func TestEnd(t *testing.T) {
	s := newStore(t, Options{})
	old := create(t, s, maps+"ns/a")
	now := commit(t, s, Change{Key: old.Key, Expect: old.Revision, Value: value(old.Key, 1)})
	if err := s.End(t.Context(), old); err != nil || s.Get(old.Key) != now {
		t.Errorf("what has been changed: %v, left %v", err, s.Get(old.Key))
	}
	for range 2 {
		if err := s.End(t.Context(), now); err != nil || s.Get(old.Key) != nil {
			t.Errorf("what there is, or is no more: %v, left %v", err, s.Get(old.Key))
		}
	}
	again := create(t, s, old.Key)
	if err := s.End(t.Context(), now); err != nil || s.Get(old.Key) != again {
		t.Errorf("what has come again: %v, left %v", err, s.Get(old.Key))
	}
}
