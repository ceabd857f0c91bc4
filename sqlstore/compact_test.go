package sqlstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// updates is how often the churn test updates its object; PLINTH_TEST_CHURN asks for
// another number, such as a million.
func updates(t *testing.T) int {
	n, err := strconv.Atoi(os.Getenv("PLINTH_TEST_CHURN"))
	if err != nil {
		return 20000
	}
	t.Logf("%d updates", n)
	return n
}

// TestChurn updates one object very often. Neither the list of its resource nor the
// file may grow with that.
func TestChurn(t *testing.T) {
	dir := t.TempDir()
	log := openLog(t, "sqlite://"+filepath.Join(dir, "p.db")+"?durability=off&reserve=0")
	s := openStore(t, log, Options{})
	for i := range 100 {
		create(t, s, fmt.Sprintf("%sns/%d", maps, i))
	}
	e := create(t, s, maps+"ns/busy")
	settled := int64(0)
	for i := range updates(t) {
		e = commit(t, s, Change{Key: e.Key, Expect: e.Revision, Value: value(e.Key, i)})
		if i%2000 == 1999 {
			if err := s.CompactTo(t.Context(), s.Revision()-500); err != nil {
				t.Fatal(err)
			}
			settled = max(settled, sizeOf(t, dir))
		}
	}
	if err := s.CompactTo(t.Context(), s.Revision()); err != nil {
		t.Fatal(err)
	}
	rows, err := allRows(t.Context(), log)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) > 110 { // what a list at any revision can touch
		t.Errorf("%d rows left for 101 objects", len(rows))
	}
	if got := revisions(t, s.Current(maps), maps, maps+"~"); len(got) != 101 {
		t.Errorf("%d objects", len(got))
	}
	if end := sizeOf(t, dir); end > 6<<20 {
		t.Errorf("%d bytes on disk, at most %d before", end, settled)
	}
}

// sizeOf adds up the files in dir.
func sizeOf(t *testing.T, dir string) (size int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			size += info.Size()
		}
	}
	return size
}

// TestHistory checks that the compactor by itself moves the floor over what is older
// than the history, and not over what is younger.
func TestHistory(t *testing.T) {
	log := openLog(t, fileDSN(t))
	s := openStore(t, log, Options{History: 300 * time.Millisecond, CompactEvery: 20 * time.Millisecond})
	var made []*Entry
	for i := range 60 {
		made = append(made, create(t, s, fmt.Sprintf("%sns/%d", maps, i)))
		time.Sleep(10 * time.Millisecond)
		floor := s.Floor()
		begin := time.Now().Add(-300 * time.Millisecond).UnixMilli()
		for _, e := range made {
			if e.Revision == floor && e.At > begin {
				t.Fatalf("the floor is at %d, which is from %d; history begins at %d", floor, e.At, begin)
			}
		}
	}
	last := made[len(made)-1].Revision
	for s.Floor() < last-1 { // the newest row stays
		time.Sleep(10 * time.Millisecond)
	}
	head, err := log.Head(context.Background())
	if err != nil || head.Floor != s.Floor() || head.Revision != last {
		t.Errorf("head %+v, %v; the store's floor is %d", head, err, s.Floor())
	}
}

// Compaction is behind while rows stay that are older than the history.
func TestCompactionBehind(t *testing.T) {
	s := newStore(t, Options{History: time.Millisecond, CompactEvery: 5 * time.Millisecond})
	e := create(t, s, maps+"ns/a")
	pin, err := s.Pin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		e = commit(t, s, Change{Key: e.Key, Expect: e.Revision, Value: value(e.Key, i)})
	}
	until(t, "somebody holds compaction up", func() bool { return s.CompactionBehind() > 100*time.Millisecond })
	pin.Release()
	until(t, "compaction has caught up", func() bool { return s.CompactionBehind() == 0 && s.Floor() >= e.Revision-1 })
}

// An outage says nothing about rows that are not older than the history.
func TestCompactionNotBehind(t *testing.T) {
	s, log := newFaultyStore(t, Options{History: time.Hour, CompactEvery: 5 * time.Millisecond})
	create(t, s, maps+"ns/a")
	log.cutOff()
	defer log.away.Store(false)
	for end := time.Now().Add(100 * time.Millisecond); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if behind := s.CompactionBehind(); behind > 0 {
			t.Fatalf("compaction is behind for %v", behind)
		}
	}
}

// uncompactable is a log that fails to compact until it is told otherwise.
type uncompactable struct {
	changelog.Log
	works atomic.Bool
	tries atomic.Int64
}

func (l *uncompactable) Compact(ctx context.Context, through int64, limit int, retention *changelog.Retention) (changelog.Compacted, error) {
	if l.works.Load() {
		return l.Log.Compact(ctx, through, limit, retention)
	}
	l.tries.Add(1)
	return changelog.Compacted{}, fmt.Errorf("compact: %w", changelog.ErrUnavailable)
}

// TestCompactionFailsOnce expects one line when compaction begins to fail, and one when it works again.
func TestCompactionFailsOnce(t *testing.T) {
	var out records
	log := &uncompactable{Log: openLog(t, fileDSN(t))}
	s := openStore(t, log, Options{History: time.Millisecond, CompactEvery: 5 * time.Millisecond, Log: out.logger()})
	e := create(t, s, maps+"ns/a")
	for i := range 3 {
		e = commit(t, s, Change{Key: e.Key, Expect: e.Revision, Value: value(e.Key, i)})
	}
	until(t, "compaction has failed again and again", func() bool { return log.tries.Load() > 3 })
	log.works.Store(true)
	out.await(t, `level=WARN msg="compaction fails`, `level=INFO msg="compaction works again`)
}
