package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestCutOffReplica lets one replica miss changes that the other has compacted before
// it comes back.
func TestCutOffReplica(t *testing.T) {
	a, b, _, logB := newReplicas(t, false)
	gone, stays := create(t, a, maps+"ns/gone"), create(t, a, maps+"ns/stays")
	if _, err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := b.Watch(maps, maps, stays.Revision)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, _, err := w.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	logB.cutOff()
	commit(t, a, Change{Key: gone.Key, Expect: gone.Revision, Delete: true, Value: value(gone.Key, 0)})
	for i := range 5 {
		create(t, a, fmt.Sprintf("%sns/%d", maps, i))
	}
	if err := a.CompactTo(t.Context(), a.Revision()-1); err != nil {
		t.Fatal(err)
	}
	logB.away.Store(false)
	if _, err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.Get(gone.Key) != nil {
		t.Error("what was deleted while the replica was away is still there")
	}
	if b.Floor() != a.Floor() {
		t.Errorf("floor %d, the other replica's is %d", b.Floor(), a.Floor())
	}
	<-w.Wait()
	if _, _, err := w.Poll(t.Context()); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("a watcher that missed a delete: %v", err)
	}
	fresh, err := b.Watch(maps, maps, b.Floor())
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if n := len(poll(t, fresh, b.Revision())); n != 1 {
		t.Errorf("%d events above the floor, want 1", n)
	}
}

// TestSweptWhileReading lets a replica hear of changes and read them only when the other
// has compacted them.
func TestSweptWhileReading(t *testing.T) {
	h := &hub{log: openLog(t, fileDSN(t)), hints: map[*replica]func(int64){}}
	t.Cleanup(func() { h.log.Close() })
	a := openStore(t, h.join(t, false), Options{})
	gone := create(t, a, maps+"ns/gone")
	logB := h.join(t, false)
	logB.gate = make(chan struct{})
	b := openStore(t, logB, Options{})
	commit(t, a, Change{Key: gone.Key, Expect: gone.Revision, Delete: true, Value: value(gone.Key, 0)})
	last := create(t, a, maps+"ns/other")
	if err := a.CompactTo(t.Context(), last.Revision); err != nil {
		t.Fatal(err)
	}
	close(logB.gate)
	if err := b.Wait(t.Context(), last.Revision); err != nil {
		t.Fatal(err)
	}
	if b.Get(gone.Key) != nil {
		t.Error("a deleted object is still there")
	}
	if b.Floor() != a.Floor() {
		t.Errorf("floor %d, the other replica's is %d", b.Floor(), a.Floor())
	}
}

// TestRaiseWhileOpen raises the revision under an open store's feet.
func TestRaiseWhileOpen(t *testing.T) {
	a, b, logA, _ := newReplicas(t, false)
	e := create(t, a, maps+"ns/a")
	if err := logA.Raise(t.Context(), 5000); err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{a, b} {
		if r, err := s.Sync(t.Context()); err != nil || r != 5000 || s.Floor() != 5000 || s.Get(e.Key) == nil {
			t.Errorf("sync: %d, %v; floor %d", r, err, s.Floor())
		}
	}
}

// TestRaise checks that revisions go on above a number that a restored copy must not
// fall below.
func TestRaise(t *testing.T) {
	log := openLog(t, fileDSN(t))
	if _, err := log.Append(t.Context(), []changelog.Change{{Key: maps + "ns/a", Value: value("a", 0)}}); err != nil {
		t.Fatal(err)
	}
	if err := log.Raise(t.Context(), 5000); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, log, Options{})
	if s.Revision() != 5000 || s.Floor() != 5000 || s.Get(maps+"ns/a") == nil {
		t.Fatalf("opened at %d, floor %d", s.Revision(), s.Floor())
	}
	if _, err := s.At(t.Context(), maps, 4999); !errors.Is(err, changelog.ErrCompacted) {
		t.Errorf("below: %v", err)
	}
	if e := create(t, s, maps+"ns/b"); e.Revision != 5001 {
		t.Errorf("next revision %d", e.Revision)
	}
	w, err := s.Watch(maps, maps, 5000)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if n := len(poll(t, w, 5001)); n != 1 {
		t.Errorf("%d events", n)
	}
}

// TestLostCommit lets a replica hear of a commit that the database loses, as MariaDB may when it is
// killed: another commit gets the revision.
func TestLostCommit(t *testing.T) {
	a, b, _, logB := newReplicas(t, true)
	first := create(t, a, maps+"ns/first")
	if _, err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	w, err := b.Watch(maps, maps, first.Revision)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	logB.hint(first.Revision + 1)
	soon, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := b.Wait(soon, first.Revision+1); !errors.Is(err, ErrFuture) {
		t.Fatalf("a revision that is not in the database is served: %v", err)
	}
	second := create(t, a, maps+"ns/second")
	if second.Revision != first.Revision+1 {
		t.Fatalf("revision %d follows %d", second.Revision, first.Revision)
	}
	if _, err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.Get(second.Key) == nil {
		t.Error("the commit that got the revision is missing")
	}
	if events := poll(t, w, second.Revision); len(events) != 1 {
		t.Errorf("%d events, want 1", len(events))
	}
}

// TestLostHead lets a reader wait for such a commit.
func TestLostHead(t *testing.T) {
	a, b, _, logB := newReplicas(t, true)
	first := create(t, a, maps+"ns/first")
	logB.lost.Store(1)
	if at, err := b.Sync(t.Context()); err != nil || at != first.Revision {
		t.Errorf("revision %d, %v, want %d", at, err, first.Revision)
	}
}

// rowless is a replica whose rows cannot be read at times.
type rowless struct {
	*replica
	broken atomic.Bool
}

func (r *rowless) Rows(ctx context.Context, after int64, limit int) ([]changelog.Row, error) {
	if r.broken.Load() {
		return nil, errAway
	}
	return r.replica.Rows(ctx, after, limit)
}

// TestRevisionsToldOfRawKeys wants those that clients know in the log, not ids of rows.
func TestRevisionsToldOfRawKeys(t *testing.T) {
	h := &hub{log: openRawLog(t, fileDSN(t)), hints: map[*replica]func(int64){}}
	t.Cleanup(func() { h.log.Close() })
	var out records
	logger := slog.New(slog.NewTextHandler(&out, nil))
	behind := &rowless{replica: h.join(t, true)}
	a, err := Open(t.Context(), h.join(t, true), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := Open(t.Context(), behind, Options{Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	putRaw(t, a, "key", "1")
	if _, err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	read, _ := changelog.Split(b.Revision())
	behind.broken.Store(true)
	behind.hint(0)
	out.awaitText(t, fmt.Sprintf("catch up from revision %d: ", read))
	putRaw(t, a, "key", "2")
	floor := putRaw(t, a, "key", "3")
	if _, err := a.Keys().CutTo(t.Context(), floor, true); err != nil {
		t.Fatal(err)
	}
	behind.broken.Store(false)
	if _, err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	out.awaitText(t, fmt.Sprintf("reading the state anew\" floor=%d revision=%d", floor, read))
}
