package sqlstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

func keeping(t testing.TB, rules string) *changelog.Retention {
	t.Helper()
	parsed, err := changelog.ParseRules(rules)
	if err != nil {
		t.Fatal(err)
	}
	if len(parsed) == 0 {
		return nil
	}
	return changelog.NewRetention(parsed...)
}

// churned is a Store with a short history in which an object was changed n times and others once.
func churned(t *testing.T, log changelog.Log, rules string, n int) (s *Store, versions []*Entry) {
	t.Helper()
	s = openStore(t, log, Options{History: 50 * time.Millisecond, CompactEvery: 10 * time.Millisecond, Retention: keeping(t, rules)})
	versions = append(versions, create(t, s, maps+"ns/a"))
	for i := range n {
		create(t, s, fmt.Sprintf("%sns/%d", pods, i))
		last := versions[len(versions)-1]
		versions = append(versions, commit(t, s, Change{Key: last.Key, Expect: last.Revision, Value: value(last.Key, i+1)}))
	}
	return s, versions
}

// waitFor waits for a condition.
func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s does not come", what)
		}
	}
}

func pastRows(t *testing.T, s *Store) int64 {
	t.Helper()
	size, err := s.Source().Size(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return size.Past
}

// TestPast reads old versions that the compactor has kept by itself.
func TestPast(t *testing.T) {
	s, versions := churned(t, openLog(t, fileDSN(t)), "configmaps=1h", 20)
	end := versions[len(versions)-1].Revision
	waitFor(t, "compaction", func() bool { return s.Floor() >= end-1 })
	waitFor(t, "the past", func() bool { return pastRows(t, s) == 19 || pastRows(t, s) == 20 })
	from, to := changelog.RangeOf(maps)
	for _, v := range versions {
		got, err := s.Past(t.Context(), from, to, v.Revision, 10)
		if err != nil || len(got) != 1 || got[0].Revision != v.Revision || got[0].At != v.At {
			t.Fatalf("at %d: %v, %v", v.Revision, got, err)
		}
		entries, err := s.OldEntries(t.Context(), []*changelog.HistoryRow{&got[0]})
		if err != nil || entries[0].Revision != v.Revision || !bytes.Equal(entries[0].Value, v.Value) {
			t.Fatalf("at %d: %v, %v", v.Revision, entries, err)
		}
	}
	rows, err := s.History(t.Context(), changelog.HistoryQuery{From: from, To: to, Through: changelog.Forever, Limit: 100})
	if err != nil || len(rows) != len(versions) {
		t.Errorf("%d changes of %d, %v", len(rows), len(versions), err)
	}
	if _, err := s.OldEntries(t.Context(), []*changelog.HistoryRow{{Row: changelog.Row{Key: maps + "ns/never", Revision: 1 << 40}}}); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("what is not there: %v", err)
	}
	if found, err := s.RevisionAt(t.Context(), versions[0].At); err != nil || found < versions[0].Revision {
		t.Errorf("revision %d, %v", found, err)
	}
	if _, err := s.Past(t.Context(), from, to, end+1, 1); !errors.Is(err, ErrFuture) {
		t.Errorf("the future: %v", err)
	}
	if st := s.Stats(); st.Kept < 19 || st.Compacted != st.Kept {
		t.Errorf("%d kept, %d compacted", st.Kept, st.Compacted)
	}
}

// TestKeepChanges: old versions get the expiry of rules that were not there when they were kept.
func TestKeepChanges(t *testing.T) {
	dsn := fileDSN(t)
	reopen := func(rules string) *Store {
		log, err := dialects.Open(context.Background(), dsn, dialects.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := object.Open(t.Context(), log, Options{History: time.Millisecond, CompactEvery: 5 * time.Millisecond, Retention: keeping(t, rules)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := reopen("*=1h")
	e := create(t, s, maps+"ns/a")
	for i := range 9 {
		e = commit(t, s, Change{Key: e.Key, Expect: e.Revision, Value: value(e.Key, i)})
	}
	commit(t, s, Change{Key: maps + "ns/b", Value: value("b", 1)})
	commit(t, s, Change{Key: maps + "ns/c", Value: value("c", 1)})
	waitFor(t, "9 versions", func() bool { return pastRows(t, s) == 9 })
	for _, step := range []struct {
		rules string
		rows  int64
	}{{"*=1h", 9}, {"configmaps=5", 5}, {"configmaps=1h/7", 5}, {"pods=1h,configmaps=1ms/3", 0}, {"*=5d", 0}, {"", 0}} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = reopen(step.rules)
		waitFor(t, "rules "+step.rules, func() bool {
			marks, err := LogOf(s).Marks(t.Context())
			return err == nil && marks["keep"] == keeping(t, step.rules).Fingerprint()
		})
		waitFor(t, fmt.Sprintf("%d versions by %s", step.rows, step.rules), func() bool { return pastRows(t, s) == step.rows })
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// fullLog is a log whose disk may be full.
type fullLog struct {
	changelog.Log
	full atomic.Bool
}

func (l *fullLog) Condition() error {
	if l.full.Load() {
		return changelog.ErrFull
	}
	return l.Log.Condition()
}

// TestKeepOnAFullDisk: no version is kept, and the older ones of the object go.
func TestKeepOnAFullDisk(t *testing.T) {
	log := &fullLog{Log: openLog(t, fileDSN(t))}
	s := openStore(t, log, Options{Retention: keeping(t, "*=1h")})
	e := create(t, s, maps+"ns/a")
	change := func() {
		t.Helper()
		for i := range 3 {
			e = commit(t, s, Change{Key: e.Key, Expect: e.Revision, Value: value(e.Key, i)})
		}
		if err := s.CompactTo(t.Context(), s.Revision()); err != nil {
			t.Fatal(err)
		}
	}
	change()
	if n := pastRows(t, s); n != 2 {
		t.Errorf("%d versions", n)
	}
	e = commit(t, s, Change{Key: e.Key, Expect: e.Revision, Value: value(e.Key, 4)})
	log.full.Store(true)
	if err := s.CompactTo(t.Context(), s.Revision()); err != nil {
		t.Fatal(err)
	}
	if n := pastRows(t, s); n != 0 {
		t.Errorf("%d versions on a full disk", n)
	}
	log.full.Store(false)
	change()
	if n := pastRows(t, s); n == 0 {
		t.Error("no versions when there is room again")
	}
	from, to := changelog.RangeOf(maps)
	if _, err := s.Past(t.Context(), from, to, 1, 1); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("before the disk was full: %v", err)
	}
}

// TestForget removes the old versions of an object from the state that readers see, and from the file.
func TestForget(t *testing.T) {
	dir := t.TempDir()
	log, err := dialects.Open(t.Context(), "sqlite://"+filepath.Join(dir, "p.db"), dialects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := object.Open(t.Context(), log, Options{History: -1, Retention: keeping(t, "*=1h")})
	if err != nil {
		t.Fatal(err)
	}
	secret := func(n int) []byte {
		return fmt.Appendf(nil, `{"kind":"S","apiVersion":"v1","metadata":{"name":"s"},"pad":%q,"password":"hunter%d"}`, strings.Repeat("x", 20*n*n), n)
	}
	key := pods + "ns/s"
	e := commit(t, s, Change{Key: key, Value: secret(1)})
	for i := 2; i < 40; i++ {
		create(t, s, fmt.Sprintf("%sns/%d", maps, i))
		e = commit(t, s, Change{Key: key, Expect: e.Revision, Value: secret(i)})
		if i == 25 {
			if err := s.CompactTo(t.Context(), s.Revision()); err != nil {
				t.Fatal(err)
			}
		}
	}
	removed, err := s.Forget(t.Context(), key)
	if err != nil || removed != 38 || s.Floor() != s.Revision() {
		t.Errorf("%d removed, %v; floor %d of %d", removed, err, s.Floor(), s.Revision())
	}
	if _, err := s.Watch(maps, maps, e.Revision-1); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("watch from before: %v", err)
	}
	if got := s.Get(key); got == nil || got.Revision != e.Revision {
		t.Errorf("the object is %v", got)
	}
	commit(t, s, object.Tombstone(s.Get(key)))
	if removed, err := s.Forget(t.Context(), key); err != nil || removed != 2 {
		t.Errorf("%d of the deleted object removed, %v", removed, err)
	}
	if removed, err := s.Forget(t.Context(), key); err != nil || removed != 0 {
		t.Errorf("%d removed again, %v", removed, err)
	}
	if _, err := s.Forget(t.Context(), "nothing"); !errors.Is(err, changelog.ErrKey) {
		t.Errorf("no key: %v", err)
	}
	create(t, s, maps+"ns/last")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"p.db", "p.db-wal"} {
		file, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if i := bytes.Index(file, []byte("hunter")); i >= 0 {
			t.Errorf("%s still has %.10q", name, file[i:])
		}
	}
}
