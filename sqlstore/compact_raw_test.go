package sqlstore_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestCutTo wants a compacted revision to be the floor at once, also if it is the newest, and
// revisions to go on above it.
func TestCutTo(t *testing.T) {
	dsn := fileDSN(t)
	s := openRaw(t, dsn, Options{})
	putRaw(t, s, "a", "1", "b", "1") // 2
	putRaw(t, s, "a", "2")           // 3
	do(t, s, func(tx *Tx) error { tx.Delete("b"); return nil })
	if found, err := s.Keys().CutTo(t.Context(), 3, true); err != nil || found != 0 {
		t.Fatalf("%d, %v", found, err)
	}
	if _, err := s.At(t.Context(), "", changelog.LastID(2)); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("state below the floor: %v", err)
	}
	v, err := s.At(t.Context(), "", changelog.LastID(3))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := rawState(t, s, v), `"a"=2@3/2/2 "b"=1@2/2/1 `; got != want {
		t.Errorf("state at the floor %s, want %s", got, want)
	}
	if found, err := s.Keys().CutTo(t.Context(), 4, true); err != nil || found != 3 {
		t.Errorf("%d, %v", found, err)
	}
	if found, err := s.Keys().CutTo(t.Context(), 4, false); err != nil || found != 4 {
		t.Errorf("once more: %d, %v", found, err)
	}
	if r, err := s.Sync(t.Context()); err != nil || r>>changelog.SubBits != 4 {
		t.Errorf("revision %d, %v", r>>changelog.SubBits, err)
	}
	if _, err := s.Keys().WatchRange("", changelog.End, changelog.LastID(3)); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("watch below the floor: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openRaw(t, dsn, Options{})
	if r := putRaw(t, s, "c", "3"); r != 5 {
		t.Errorf("revision after the cut: %d", r)
	}
	if got, want := rawState(t, s, s.Current("")), `"a"=2@3/2/2 "c"=3@5/5/1 `; got != want {
		t.Errorf("state %s, want %s", got, want)
	}
}

// TestCutToNewest compacts at a revision that deleted everything, as somebody does who is out of space.
// Nothing but its tombstones may be left, and those may not survive the next cut. It is the same when
// a server stops before it has swept, which the next one does.
func TestCutToNewest(t *testing.T) {
	for name, stopped := range map[string]bool{"at once": false, "after a restart": true} {
		t.Run(name, func(t *testing.T) {
			dsn := fileDSN(t)
			s := openRaw(t, dsn, Options{})
			var keys []string
			for i := range 700 { // more than a step
				keys = append(keys, fmt.Sprintf("k%03d", i), "value")
			}
			putRaw(t, s, keys...) // 2
			do(t, s, func(tx *Tx) error {
				for i := 0; i < len(keys); i += 2 {
					tx.Delete(keys[i])
				}
				return nil
			}) // 3
			if stopped {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				l := openRawLog(t, dsn)
				if _, err := l.Cut(t.Context(), changelog.LastID(3)); err != nil {
					t.Fatal(err)
				}
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				s = openRaw(t, dsn, Options{})
				for end := time.Now().Add(2 * time.Minute); s.Stats().Compacted < 700 && time.Now().Before(end); {
					time.Sleep(10 * time.Millisecond)
				}
			} else if _, err := s.Keys().CutTo(t.Context(), 3, true); err != nil {
				t.Fatal(err)
			}
			if got := leftIn(t, s); len(got) != 700 || got[0] != "3 k000 deleted" {
				t.Errorf("%d rows are left, first %v; want the tombstones", len(got), got[:min(1, len(got))])
			}
			putRaw(t, s, "k000", "new") // 4
			if _, err := s.Keys().CutTo(t.Context(), 4, true); err != nil {
				t.Fatal(err)
			}
			if got := leftIn(t, s); len(got) != 1 || got[0] != "4 k000" {
				t.Errorf("rows left by the next cut: %v", got)
			}
		})
	}
}

// leftIn describes the rows of the log.
func leftIn(t *testing.T, s *Store) (out []string) {
	t.Helper()
	rows, err := LogOf(s).Rows(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		revision, _ := changelog.Split(r.Revision)
		what := fmt.Sprint(revision, " ", r.Key)
		if r.Deleted {
			what += " deleted"
		}
		out = append(out, what)
	}
	return out
}

// newRawReplicas opens two Stores of raw keys on one database. Neither is told what the other writes.
func newRawReplicas(t *testing.T) (a, b *Store) {
	h := &hub{log: openRawLog(t, fileDSN(t)), hints: map[*replica]func(int64){}}
	t.Cleanup(func() { h.log.Close() })
	open := func() *Store {
		s, err := Open(t.Context(), h.join(t, true), Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	return open(), open()
}

// TestSweptBehind has a replica compact deletes that the other has not read. The other must neither keep the
// keys, nor decide its transactions as if they were there, nor go on with watches as if nothing was missing.
func TestSweptBehind(t *testing.T) {
	for name, catchUp := range map[string]func(*testing.T, *Store){
		"transaction": func(t *testing.T, b *Store) {
			do(t, b, func(tx *Tx) error {
				if tx.Get("gone") != nil {
					t.Error("a transaction sees a key that was deleted")
				}
				tx.Put("other", nil, 0)
				return nil
			})
		},
		"sync": func(t *testing.T, b *Store) {
			if _, err := b.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, deleted := range []string{"alone", "last of a revision"} {
			t.Run(name+", "+deleted, func(t *testing.T) {
				a, b := newRawReplicas(t)
				putRaw(t, a, "gone", "1", "kept", "1")
				if _, err := b.Sync(t.Context()); err != nil {
					t.Fatal(err)
				}
				w, err := b.Keys().WatchRange("", changelog.End, b.Revision())
				if err != nil {
					t.Fatal(err)
				}
				defer w.Close()
				do(t, a, func(tx *Tx) error {
					if deleted != "alone" {
						tx.Put("beside", []byte("1"), 0)
					}
					tx.Delete("gone")
					return nil
				})
				revision, _ := changelog.Split(a.Revision())
				putRaw(t, a, "kept", "2")
				for _, through := range []int64{revision, revision + 1} {
					if _, err := a.Keys().CutTo(t.Context(), through, true); err != nil {
						t.Fatal(err)
					}
				}
				catchUp(t, b)
				if b.Get("gone") != nil {
					t.Error("a key that was deleted is still there")
				}
				if _, _, err := w.Poll(t.Context()); !errors.Is(err, changelog.ErrCompacted) {
					t.Errorf("a watcher that missed the delete: %v", err)
				}
			})
		}
	}
}

// TestCutToEmpty compacts the first revision, which has no rows.
func TestCutToEmpty(t *testing.T) {
	s := openRaw(t, fileDSN(t), Options{})
	if found, err := s.Keys().CutTo(t.Context(), 1, true); err != nil || found != 0 {
		t.Fatalf("%d, %v", found, err)
	}
	if floor, revision := s.Floor(), s.Revision(); floor != changelog.LastID(1) || revision != changelog.LastID(1) {
		t.Errorf("floor %d, revision %d, want %d", floor, revision, changelog.LastID(1))
	}
	w, err := s.Keys().WatchRange("", changelog.End, changelog.LastID(1))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	putRaw(t, s, "a", "1")
	if events, _, err := w.Poll(t.Context()); err != nil || len(events) != 1 || events[0].Entry.Revision != changelog.FirstID(2) {
		t.Errorf("events %v, %v", events, err)
	}
}
