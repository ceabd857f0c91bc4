package sqlstore_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

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
