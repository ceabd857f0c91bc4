package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/transfer"
)

// TestCopyOnline copies between all dialects while the source is served and written to. What was
// acknowledged is in the target, with who wrote it; nothing is acknowledged when the source has moved. How long the source
// is stopped BenchmarkCopyOnline tells.
func TestCopyOnline(t *testing.T) {
	for _, source := range logtest.Dialects {
		for _, target := range logtest.Dialects {
			t.Run(source.Name+" to "+target.Name, func(t *testing.T) {
				copyServed(t, source.Fresh(t), target.Fresh(t), time.Hour)
			})
		}
	}
}

// TestCopyOnlineCompacted does so while the source forgets its history so soon that the copy misses
// deletes, and has to compare.
func TestCopyOnlineCompacted(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		copyServed(t, d.Fresh(t), logtest.SQLite(t), 50*time.Millisecond)
	})
}

func copyServed(t *testing.T, from, to string, history time.Duration) {
	ctx := t.Context()
	store := serve(t, from, history)
	w := &writers{store: store, acknowledged: map[string]written{}}
	w.fill(t, 2000) // more than one page
	w.start(t, 4)
	source, target := openBeside(t, from), openBeside(t, to)
	copied, err := transfer.Copy(ctx, target, source, transfer.CopyOptions{Online: true, Place: "elsewhere"})
	w.wait()
	t.Logf("%+v, %d changes in all", copied, w.changes)
	if err != nil || copied.Objects < 1000 {
		t.Fatalf("%+v, %v", copied, err)
	}
	w.check(t, target)
	if err := w.commit(ctx, "late", false); !errors.Is(err, changelog.ErrMoved) || !errors.Is(err, changelog.ErrUnavailable) || !strings.Contains(err.Error(), "moved to elsewhere") {
		t.Errorf("a write after the copy: %v", err)
	}
	if err := store.Healthy(); !errors.Is(err, changelog.ErrMoved) {
		t.Errorf("health: %v", err)
	}
	if err := changelog.CheckMoved(ctx, source); !errors.Is(err, changelog.ErrMoved) {
		t.Errorf("the source: %v", err)
	}
	if err := errors.Join(changelog.CheckMoved(ctx, target), changelog.HalfCopied(ctx, target)); err != nil {
		t.Errorf("the target: %v", err)
	}
	before, there := mustHead(t, source), mustHead(t, target)
	if err := transfer.TakeBack(ctx, source); err != nil {
		t.Fatal(err)
	}
	if back := mustHead(t, source); back.Revision <= there.Revision || before.Revision >= there.Revision {
		t.Errorf("taken back at %d; before it was at %d, and the copy is at %d", back.Revision, before.Revision, there.Revision)
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err = w.commit(ctx, "late", false); err == nil || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		t.Errorf("a write after the source was taken back: %v", err)
	}
	w.check(t, source)
}

// TestCopyOvertaken begins a copy to the same target while one writes there. The first one ends, and leaves
// the source stopped.
func TestCopyOvertaken(t *testing.T) {
	ctx := t.Context()
	from, to := openDSN(t, "sqlite://:memory:"), openDSN(t, "sqlite://:memory:")
	mustAppend(t, from, changelog.Change{Key: "/registry/core/configmaps/ns/a", Value: []byte("{}")})
	o := transfer.CopyOptions{Online: true, Place: "elsewhere"}
	slow := &hookedLog{Log: to, beforeMarks: func(n int) {
		if n == 3 { // after those of its begin, and before it stops the source
			if _, err := transfer.Copy(ctx, to, from, o); err != nil {
				t.Error(err)
			}
		}
	}}
	if _, err := transfer.Copy(ctx, slow, from, o); !errors.Is(err, transfer.ErrOvertaken) || errors.Is(err, changelog.ErrHalfCopied) {
		t.Errorf("the copy that was overtaken: %v", err)
	}
	if err := errors.Join(changelog.CheckMoved(ctx, to), changelog.HalfCopied(ctx, to)); err != nil {
		t.Errorf("the target: %v", err)
	}
	if err := changelog.CheckMoved(ctx, from); !errors.Is(err, changelog.ErrMoved) {
		t.Errorf("the source: %v", err)
	}
	if _, err := transfer.Copy(ctx, to, from, o); !errors.Is(err, transfer.ErrCopied) {
		t.Errorf("the same copy again: %v", err)
	}
}

// TestCopyToTwoTargets runs two copies of a source side by side. One of them stops it; the other one
// fails and does not let it go on.
func TestCopyToTwoTargets(t *testing.T) {
	ctx := t.Context()
	from, first, second := openDSN(t, "sqlite://:memory:"), openDSN(t, "sqlite://:memory:"), openDSN(t, "sqlite://:memory:")
	mustAppend(t, from, changelog.Change{Key: "/registry/core/configmaps/ns/a", Value: []byte("{}")})
	slow := &hookedLog{Log: from, beforeMove: func() {
		if _, err := transfer.Copy(ctx, first, from, transfer.CopyOptions{Online: true, Place: "first"}); err != nil {
			t.Error(err)
		}
	}}
	_, err := transfer.Copy(ctx, second, slow, transfer.CopyOptions{Online: true, Place: "second"})
	if !errors.Is(err, changelog.ErrMoved) || !strings.Contains(err.Error(), "moved to first") {
		t.Errorf("the second copy: %v", err)
	}
	if err := changelog.CheckMoved(ctx, from); !errors.Is(err, changelog.ErrMoved) || !strings.Contains(err.Error(), "moved to first") {
		t.Errorf("the source: %v", err)
	}
	if err := changelog.HalfCopied(ctx, second); !errors.Is(err, changelog.ErrHalfCopied) {
		t.Errorf("the second target: %v", err)
	}
}

// TestCopyFailsAtTheEnd loses the target when the source is stopped: the source goes on.
func TestCopyFailsAtTheEnd(t *testing.T) {
	ctx := t.Context()
	from, to := openDSN(t, "sqlite://:memory:"), openDSN(t, "sqlite://:memory:")
	a := mustAppend(t, from, changelog.Change{Key: "/registry/core/configmaps/ns/a", Value: []byte("{}")})
	lost := &hookedLog{Log: to}
	source := &hookedLog{Log: from, beforeMove: func() {
		if lost.err == nil {
			a = mustAppend(t, from, changelog.Change{Key: "/registry/core/configmaps/ns/a", Expect: a, Value: []byte(`{"n":1}`)})
			lost.err = changelog.ErrFull
		}
	}}
	o := transfer.CopyOptions{Online: true, Place: "elsewhere"}
	if _, err := transfer.Copy(ctx, lost, source, o); !errors.Is(err, changelog.ErrFull) || !errors.Is(err, changelog.ErrHalfCopied) {
		t.Errorf("a copy to a target that is full: %v", err)
	}
	mustAppend(t, from, changelog.Change{Key: "/registry/core/configmaps/ns/a", Expect: a, Value: []byte(`{"n":2}`)})
	if _, err := transfer.Copy(ctx, to, from, o); err != nil {
		t.Error(err)
	}
	if got := held(t, to)["/registry/core/configmaps/ns/a"].Value; got != `{"n":2}` {
		t.Errorf("the target has %s", got)
	}
}

// hookedLog is a log to which something happens while it is copied.
type hookedLog struct {
	changelog.Log
	beforeMarks func(n int) // before the n-th call
	beforeMove  func()
	err         error // of Append
	marks       int
}

func (l *hookedLog) Marks(ctx context.Context) (map[string]string, error) {
	if l.marks++; l.beforeMarks != nil {
		l.beforeMarks(l.marks)
	}
	return l.Log.Marks(ctx)
}

func (l *hookedLog) Move(ctx context.Context, to string) (int64, error) {
	if l.beforeMove != nil {
		l.beforeMove()
	}
	return l.Log.Move(ctx, to)
}

func (l *hookedLog) Append(ctx context.Context, batch []changelog.Change) (changelog.Appended, error) {
	if l.err != nil {
		return changelog.Appended{}, l.err
	}
	return l.Log.Append(ctx, batch)
}

func serve(t *testing.T, dsn string, history time.Duration) *sqlstore.Store {
	t.Helper()
	store, err := object.Open(t.Context(), openDSN(t, dsn), sqlstore.Options{History: history, CompactEvery: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// openBeside opens a log as the process of a copy does.
func openBeside(t testing.TB, dsn string) changelog.Log {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Beside: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return log
}

// written is what a key holds.
type written struct{ Value, User, AuditID string }

// writers write to a store until it refuses.
type writers struct {
	store *sqlstore.Store
	wg    sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[string]written // keys that are there
	changes      int
}

func (w *writers) fill(t *testing.T, n int) {
	t.Helper()
	var wg sync.WaitGroup
	for part := range 50 {
		wg.Go(func() {
			for i := part; i < n; i += 50 {
				if err := w.commit(t.Context(), fmt.Sprintf("old%05d", i), false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// start has n writers change objects of their own: old and new ones, back and forth.
func (w *writers) start(t *testing.T, n int) {
	for i := range n {
		w.wg.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for writes := 0; ; writes++ {
				name := fmt.Sprintf("old%05d", random.IntN(500)*n+i)
				if random.IntN(2) == 0 {
					name = fmt.Sprintf("new%05d", random.IntN(20)*n+i)
				}
				err := w.commit(t.Context(), name, random.IntN(3) == 0)
				if errors.Is(err, changelog.ErrMoved) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(pauseAfter(writes))
			}
		})
	}
}

// pauseAfter is how long a writer pauses after so many writes. After 500, all of them write at the same moments, which become
// rarer: a copy of what is forgotten within 50 ms has to compare all objects between two writes, which takes seconds on a
// busy machine.
func pauseAfter(writes int) time.Duration {
	if writes < 500 {
		return 2 * time.Millisecond
	}
	gap := time.Second << min(5, (writes-500)/10)
	return time.Until(time.Now().Truncate(gap).Add(gap))
}

// commit writes or deletes an object and notes that when it is acknowledged.
func (w *writers) commit(ctx context.Context, name string, remove bool) error {
	c := sqlstore.Change{Key: "/registry/core/configmaps/ns/" + name}
	now := written{Value: fmt.Sprintf(`{"metadata":{"name":%q},"data":{"k":"%x"}}`, name, rand.Uint64()), User: fmt.Sprint("user", rand.IntN(50)), AuditID: fmt.Sprint("audit", rand.Uint32())}
	if e := w.store.Get(c.Key); e != nil {
		c.Expect, c.Delete = e.Revision, remove
	}
	c.Value = []byte(now.Value)
	_, err := w.store.Commit(sqlstore.WithOrigin(ctx, &changelog.Origin{Author: changelog.Author{User: now.User, Verb: "update"}, AuditID: now.AuditID}), c)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes++
	if w.acknowledged[c.Key] = now; c.Delete {
		delete(w.acknowledged, c.Key)
	}
	return nil
}

func (w *writers) wait() { w.wg.Wait() }

// check compares what was acknowledged with what a log holds.
func (w *writers) check(t *testing.T, log changelog.Log) {
	t.Helper()
	if diff := cmp.Diff(w.acknowledged, held(t, log)); diff != "" {
		t.Errorf("acknowledged (-) and in the target (+):\n%.3000s", diff)
	}
}

func mustHead(t *testing.T, log changelog.Log) changelog.Head {
	t.Helper()
	head, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// held is what the keys of a log hold.
func held(t *testing.T, log changelog.Log) map[string]written {
	t.Helper()
	ctx := t.Context()
	rows, err := log.State(ctx, "/", "0", mustHead(t, log).Revision, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]written{}
	for chunk := range slices.Chunk(rows, 500) {
		var ids []int64
		for _, r := range chunk {
			ids = append(ids, r.Revision)
		}
		origins, err := log.Origins(ctx, ids)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range chunk {
			o := origins[r.Revision]
			all[r.Key] = written{string(r.Value), o.User, o.AuditID}
		}
	}
	return all
}

// TestRounds: a source whose objects are deleted and made again all the time costs a copy few transactions, and each key
// ends as it does in the source.
func TestRounds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var changes []changelog.Change
	there, objects := map[string]bool{}, map[string]int{}
	for i := range 1000 {
		key := fmt.Sprint("key", random.IntN(50))
		c := changelog.Change{Key: key, Value: fmt.Append(nil, i), Delete: there[key] && random.IntN(3) == 0}
		if !c.Delete && !there[key] {
			objects[key]++
		}
		there[key] = !c.Delete
		changes = append(changes, c)
	}
	ends := func(changes []changelog.Change) map[string]string {
		state := map[string]string{}
		for _, c := range changes {
			if state[c.Key] = string(c.Value); c.Delete {
				delete(state, c.Key)
			}
		}
		return state
	}
	rounds := transfer.Rounds(changes)
	most := 0
	for _, n := range objects {
		most = max(most, n)
	}
	if len(rounds) > most {
		t.Errorf("%d rounds, but no key had more than %d objects", len(rounds), most)
	}
	deleted := map[string]bool{} // by the last change of the key
	for _, round := range rounds {
		seen := map[string]bool{}
		for _, c := range round {
			if seen[c.Key] {
				t.Fatalf("a round changes %s twice", c.Key)
			}
			if before, changed := deleted[c.Key]; changed && !before {
				t.Fatalf("%s is changed again, though nothing has deleted it", c.Key)
			}
			seen[c.Key], deleted[c.Key] = true, c.Delete
		}
	}
	if diff := cmp.Diff(ends(changes), ends(slices.Concat(rounds...))); diff != "" {
		t.Errorf("in the source (-) and in the target (+):\n%s", diff)
	}
}
