package sqlstore_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// TestUnreadableHeals opens a store without the key: the entry is there, is left out of scans, and
// is read when the key comes up.
func TestUnreadableHeals(t *testing.T) {
	path, l := t.TempDir()+"/db", newLock("a")
	s := openLocked(t, path, l)
	made, err := s.Commit(t.Context(), Change{Key: lockedKey, Value: lockedValue("1")})
	if err != nil {
		t.Fatal(err)
	}
	other := "/registry/core/locked/a/two"
	if _, err := s.Commit(t.Context(), Change{Key: other, Value: lockedValue("2")}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	unknown := "b"
	l.key.Store(&unknown)
	s = openLocked(t, path, l)
	e := s.Get(lockedKey)
	var u *Unreadable
	if e == nil || !errors.As(e.Unreadable(), &u) || u.Key != lockedKey || u.Revision != made.Revision || e.Value != nil {
		t.Fatalf("without the key: %+v", e)
	}
	if _, err := s.Commit(t.Context(), Change{Key: lockedKey + "b", Value: lockedValue("3")}); err != nil {
		t.Fatal(err)
	}
	scan := func() (keys []string, err error) {
		err = s.Current("/registry/core/locked/").Scan(t.Context(), "/registry/core/locked/", "/registry/core/locked0", func(e *Entry) bool {
			keys = append(keys, e.Key)
			return true
		})
		return keys, err
	}
	keys, err := scan()
	var bad *UnreadableError
	if !errors.As(err, &bad) || len(bad.Objects) != 2 || bad.Objects[0].Key != lockedKey || !slices.Equal(keys, []string{lockedKey + "b"}) {
		t.Errorf("scan: %v %v", keys, err)
	}
	view := s.Current("/registry/core/locked/")
	known := "a"
	l.key.Store(&known)
	time.Sleep(250 * time.Millisecond) // no sooner is it tried again
	if e, err := view.Get(t.Context(), lockedKey); err != nil || e.Unreadable() != nil {
		t.Errorf("an old view does not heal: %v", err)
	}
	if e := s.Get(lockedKey); e.Unreadable() != nil || !bytes.Equal(e.Value, object.Splice(lockedValue("1"), made.Revision)) {
		t.Errorf("after the key came up: %v %s", e.Unreadable(), e.Value)
	}
	reads := l.reads.Load()
	for range 10 {
		s.Get(lockedKey)
	}
	if n := l.reads.Load() - reads; n != 0 {
		t.Errorf("a healed entry was read %d times again", n)
	}
}

// TestUnreadableTombstone deletes what cannot be read: its stored form stays as it was.
func TestUnreadableTombstone(t *testing.T) {
	path, l := t.TempDir()+"/db", newLock("a")
	s := openLocked(t, path, l)
	if _, err := s.Commit(t.Context(), Change{Key: lockedKey, Value: lockedValue("1")}); err != nil {
		t.Fatal(err)
	}
	after := s.Revision()
	s.Close()
	unknown := "b"
	l.key.Store(&unknown)
	s = openLocked(t, path, l)
	gone, err := s.Commit(t.Context(), object.Tombstone(s.Get(lockedKey)))
	if err != nil || gone.Unreadable() == nil {
		t.Fatalf("tombstone: %v %v", gone, err)
	}
	if s.Get(lockedKey) != nil {
		t.Error("it is still there")
	}
	if _, err := s.Commit(t.Context(), Change{Key: lockedKey, Value: lockedValue("2")}); err != nil {
		t.Errorf("create after the deletion: %v", err)
	}
	s.Close()
	known := "a"
	l.key.Store(&known)
	s = openLocked(t, path, l)
	w, err := s.Watch("/registry/core/locked/", "/registry/core/locked/", after)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	events, _, err := w.Poll(t.Context())
	if err != nil || len(events) != 2 || events[0].Type != Delete || !bytes.Contains(events[0].Entry.Value, []byte(`"n":"1"`)) || events[1].Entry.Unreadable() == nil {
		t.Errorf("events from the log: %v %v", events, err)
	}
}

// TestUndecodable has rows of another process that are no objects, and values that were damaged after they had left memory: both
// become unreadable when they are read, are listed nowhere without an error, and can be deleted.
func TestUndecodable(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		s := storetest.Open(t, dsn, Options{StateBytes: 1, Check: object.Check})
		other := storetest.Open(t, dsn, Options{})
		put := func(name, value string) {
			t.Helper()
			if _, err := storetest.Put(t.Context(), other, maps+"ns/"+name, value); err != nil {
				t.Fatal(err)
			}
		}
		good := func(name string) string {
			return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"ns"}}`, name)
		}
		put("away", good("away"))
		put("good", good("good"))
		until(t, "the values have left memory", func() bool { _, err := s.Sync(t.Context()); s.EvictNow(); return err == nil && s.Stats().Away == 2 })
		if bad := s.Unreadable(maps); bad != nil || s.Damaged() != 0 {
			t.Errorf("unreadable at first: %v, %d", bad, s.Damaged())
		}
		name, value := "key", `'\x7b626164'::bytea`
		if d.Name == "mariadb" {
			name, value = "`key`", "X'7b626164'"
		}
		logtest.Exec(t, dsn, fmt.Sprintf("UPDATE log SET value = %s WHERE %s = '%sns/away'", value, name, maps))
		put("other", good("good")) // the name is another's
		put("cut", `{"kind":"ConfigMap"`)
		if _, err := s.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		from, to := changelog.RangeOf(maps)
		n := 0
		err := s.Current(maps).Scan(t.Context(), from, to, func(*Entry) bool { n++; return true })
		var bad *UnreadableError
		if !errors.As(err, &bad) || len(bad.Objects) != 3 || n != 1 {
			t.Fatalf("%d objects, %v", n, err)
		}
		known := s.Unreadable(maps + "ns/")
		if known == nil || len(known.Objects) != 3 || s.Damaged() != 3 {
			t.Fatalf("known: %v, %d", known, s.Damaged())
		}
		if err := s.Current(maps).Outline(t.Context(), from, to, func(*Entry) bool { return true }); !errors.As(err, &bad) || len(bad.Objects) != 3 {
			t.Errorf("outline: %v", err)
		}
		for i, name := range []string{"away", "cut", "other"} {
			e := s.Get(maps + "ns/" + name)
			var u *Unreadable
			if !errors.As(e.Unreadable(), &u) || !u.Damaged() || e.Value != nil || known.Objects[i].Key != e.Key {
				t.Errorf("%s: %v, value %q", name, e.Unreadable(), e.Value)
			}
			if _, err := s.Commit(t.Context(), object.Tombstone(e)); err != nil {
				t.Errorf("delete %s: %v", name, err)
			}
		}
		if bad := s.Unreadable(maps); bad != nil || s.Damaged() != 0 {
			t.Errorf("in the end: %v, %d", bad, s.Damaged())
		}
	})
}
