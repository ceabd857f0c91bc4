package sqlstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/plinth-io/plinth/dialects/logtest"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// hub lets several Stores share one log of this process as replicas share a database.
type hub struct {
	log changelog.Log

	mu    sync.Mutex
	hints map[*replica]func(int64)
}

// replica is one Store's side of a hub.
type replica struct {
	faultyLog
	hub  *hub
	deaf bool          // gets no hints
	gate chan struct{} // if set, reading rows waits until it is closed

	headGate atomic.Pointer[chan struct{}] // if set, reading the head waits until it is closed

	lost atomic.Int64 // what the next head has beyond the log's
}

func (h *hub) join(t testing.TB, deaf bool) *replica {
	return &replica{faultyLog: faultyLog{Log: h.log, t: t, shared: true}, hub: h, deaf: deaf}
}

func (r *replica) Append(ctx context.Context, batch []changelog.Change) (changelog.Appended, error) {
	a, err := r.faultyLog.Append(ctx, batch)
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	for other, hint := range r.hub.hints {
		if other != r && !other.deaf {
			hint(0)
		}
	}
	return a, err
}

func (r *replica) Follow(ctx context.Context, f changelog.Follower) {
	r.hub.mu.Lock()
	r.hub.hints[r] = f.Hint
	r.hub.mu.Unlock()
	<-ctx.Done()
	r.hub.mu.Lock()
	delete(r.hub.hints, r)
	r.hub.mu.Unlock()
}

// hint tells the replica's Store of a revision.
func (r *replica) hint(revision int64) {
	for {
		r.hub.mu.Lock()
		hint := r.hub.hints[r]
		r.hub.mu.Unlock()
		if hint != nil {
			hint(revision)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *replica) Rows(ctx context.Context, after int64, limit int) ([]changelog.Row, error) {
	if r.gate != nil {
		<-r.gate
	}
	return r.faultyLog.Rows(ctx, after, limit)
}

func (r *replica) Head(ctx context.Context) (changelog.Head, error) {
	if gate := r.headGate.Load(); gate != nil {
		<-*gate
	}
	head, err := r.faultyLog.Head(ctx)
	head.Revision += r.lost.Swap(0)
	return head, err
}

// Close leaves the log to the other replicas.
func (r *replica) Close() error { return nil }

// newReplicas opens two Stores on one database.
func newReplicas(t *testing.T, deaf bool) (a, b *Store, logA, logB *replica) {
	h := &hub{log: openLog(t, fileDSN(t)), hints: map[*replica]func(int64){}}
	t.Cleanup(func() { h.log.Close() })
	logA, logB = h.join(t, deaf), h.join(t, deaf)
	return openStore(t, logA, Options{}), openStore(t, logB, Options{}), logA, logB
}

func TestReplicas(t *testing.T) {
	for name, deaf := range map[string]bool{"hints": false, "no hints": true} {
		t.Run(name, func(t *testing.T) {
			a, b, _, _ := newReplicas(t, deaf)
			testReplicas(t, a, b)
		})
	}
}

// TestOwnCommitFindsMissedRows checks that a replica that heard nothing of another's
// rows applies them before its own.
func TestOwnCommitFindsMissedRows(t *testing.T) {
	a, b, _, _ := newReplicas(t, true)
	w, err := b.Watch(maps, maps, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range 5 {
		create(t, a, fmt.Sprintf("%sns/a%d", maps, i))
	}
	last := create(t, b, maps+"ns/b")
	if b.Get(maps+"ns/a4") == nil {
		t.Error("b has its own row and not the ones before")
	}
	if n := len(poll(t, w, last.Revision)); n != 6 {
		t.Errorf("%d events, want 6", n)
	}
}

func TestHintWakesWatcher(t *testing.T) {
	begun := time.Now()
	a, b, _, _ := newReplicas(t, false)
	w, err := b.Watch(maps, maps, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, _, err := w.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, a, maps+"ns/a")
	<-w.Wait()
	if events, _, err := w.Poll(t.Context()); err != nil || len(events) != 1 {
		t.Errorf("%d events, %v", len(events), err)
	}
	// An idle Store asks for the head now and then, also on a machine that stands still.
	if n, most := b.Stats().HeadReads, int64(time.Since(begun)/PingEvery); n > most {
		t.Errorf("it took %d queries for the head", n)
	}
}

func TestReplicasOnPostgres(t *testing.T) { testReplicasOn(t, logtest.Postgres(t)) }
func TestReplicasOnMariaDB(t *testing.T)  { testReplicasOn(t, logtest.MariaDB(t)) }

// testReplicasOn opens two Stores on one real database, each with its own connections.
func testReplicasOn(t *testing.T, dsn string) {
	a := openStore(t, &faultyLog{Log: openLog(t, dsn), t: t}, Options{})
	b := openStore(t, &faultyLog{Log: openLog(t, dsn), t: t}, Options{WindowBytes: 20000})
	w, err := b.Watch(maps, maps, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	testReplicas(t, a, b)
	if err := a.Probe(); err != nil {
		t.Errorf("probe: %v", err)
	}
	if diff := cmp.Diff(history(t, a, maps), rowsOf(poll(t, w, b.Revision()))); diff != "" {
		t.Errorf("a watcher on one replica, the history on the other:\n%s", diff)
	}
	if err := a.CompactTo(t.Context(), a.Revision()-10); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Sync(t.Context()); err != nil || b.Floor() != a.Floor() {
		t.Errorf("floor %d after Sync, %v; the other replica's is %d", b.Floor(), err, a.Floor())
	}
}

// testReplicas writes on both and compares what they show.
func testReplicas(t *testing.T, a, b *Store) {
	e := create(t, a, maps+"ns/sync")
	if _, err := b.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.Get(e.Key); got == nil || got.Revision != e.Revision || string(got.Value) != string(e.Value) {
		t.Fatalf("after Sync: %+v, want %+v", got, e)
	}
	var wg sync.WaitGroup
	for i := range 6 {
		s := []*Store{a, b}[i%2]
		wg.Go(func() { writeRandomly(t, s, uint64(i), 100) })
	}
	wg.Wait()
	ra, errA := a.Sync(t.Context())
	rb, errB := b.Sync(t.Context())
	if errA != nil || errB != nil || ra != rb {
		t.Fatalf("sync: %d, %v; %d, %v", ra, errA, rb, errB)
	}
	for _, resource := range []string{maps, pods} {
		if diff := cmp.Diff(history(t, a, resource), history(t, b, resource)); diff != "" {
			t.Errorf("%s, one replica against the other:\n%s", resource, diff)
		}
	}
}
