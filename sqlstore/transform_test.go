package sqlstore_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/sqlite"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// lock is a Transformer with one key. What it stores with another key it cannot read.
type lock struct {
	key   atomic.Pointer[string]
	reads atomic.Int64
}

func newLock(key string) *lock {
	l := &lock{}
	l.key.Store(&key)
	return l
}

func (l *lock) ToStorage(_ context.Context, key string, value []byte) ([]byte, error) {
	name := *l.key.Load()
	switch {
	case !strings.Contains(key, "/locked/"):
		return value, nil
	case name == "":
		return nil, errors.New("no key")
	}
	stored := []byte("enc:" + name + ":")
	for _, c := range value {
		stored = append(stored, c^0x80)
	}
	return stored, nil
}

func (l *lock) FromStorage(_ context.Context, key string, stored []byte) ([]byte, bool, error) {
	if !strings.Contains(key, "/locked/") {
		return stored, false, nil
	}
	l.reads.Add(1)
	name := *l.key.Load()
	rest, ok := bytes.CutPrefix(stored, []byte("enc:"+name+":"))
	if !ok && stored[0] != '{' {
		return nil, false, errors.New("wrong key")
	}
	if !ok {
		return stored, name != "", nil
	}
	value := bytes.Clone(rest)
	for i := range value {
		value[i] ^= 0x80
	}
	return value, false, nil
}

const lockedKey = "/registry/core/locked/a/one"

func openLocked(t *testing.T, path string, l *lock) *sqlstore.Store {
	t.Helper()
	log, err := sqlite.Open(t.Context(), sqlite.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	s, err := object.Open(t.Context(), log, sqlstore.Options{Transformer: l})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func lockedValue(n string) []byte {
	return []byte(`{"kind":"L","apiVersion":"v1","metadata":{"name":"one"},"n":"` + n + `"}`)
}

// TestUnreadableHeals opens a store without the key: the entry is there, is left out of scans, and
// is read when the key comes up.
func TestUnreadableHeals(t *testing.T) {
	path, l := t.TempDir()+"/db", newLock("a")
	s := openLocked(t, path, l)
	made, err := s.Commit(t.Context(), sqlstore.Change{Key: lockedKey, Value: lockedValue("1")})
	if err != nil {
		t.Fatal(err)
	}
	other := "/registry/core/locked/a/two"
	if _, err := s.Commit(t.Context(), sqlstore.Change{Key: other, Value: lockedValue("2")}); err != nil {
		t.Fatal(err)
	}
	s.Close()
	unknown := "b"
	l.key.Store(&unknown)
	s = openLocked(t, path, l)
	e := s.Get(lockedKey)
	var u *sqlstore.Unreadable
	if e == nil || !errors.As(e.Unreadable(), &u) || u.Key != lockedKey || u.Revision != made.Revision || e.Value != nil {
		t.Fatalf("without the key: %+v", e)
	}
	if _, err := s.Commit(t.Context(), sqlstore.Change{Key: lockedKey + "b", Value: lockedValue("3")}); err != nil {
		t.Fatal(err)
	}
	scan := func() (keys []string, err error) {
		err = s.Current("/registry/core/locked/").Scan(t.Context(), "/registry/core/locked/", "/registry/core/locked0", func(e *sqlstore.Entry) bool {
			keys = append(keys, e.Key)
			return true
		})
		return keys, err
	}
	keys, err := scan()
	var bad *sqlstore.UnreadableError
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
	if _, err := s.Commit(t.Context(), sqlstore.Change{Key: lockedKey, Value: lockedValue("1")}); err != nil {
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
	if _, err := s.Commit(t.Context(), sqlstore.Change{Key: lockedKey, Value: lockedValue("2")}); err != nil {
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
	if err != nil || len(events) != 2 || events[0].Type != sqlstore.Delete || !bytes.Contains(events[0].Entry.Value, []byte(`"n":"1"`)) || events[1].Entry.Unreadable() == nil {
		t.Errorf("events from the log: %v %v", events, err)
	}
}

// TestSealFails refuses a change whose value cannot be encrypted, and no other.
func TestSealFails(t *testing.T) {
	s := openLocked(t, t.TempDir()+"/db", newLock(""))
	_, err := s.Commit(t.Context(), sqlstore.Change{Key: lockedKey, Value: lockedValue("1")})
	var u *sqlstore.Unreadable
	if !errors.As(err, &u) {
		t.Errorf("commit: %v", err)
	}
	if _, err := s.Commit(t.Context(), sqlstore.Change{Key: "/registry/core/open/a/one", Value: lockedValue("1")}); err != nil {
		t.Errorf("another resource: %v", err)
	}
}
