package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// model is what the store should be: the full history, in a slice.
type model struct {
	rows  []modelRow
	floor int64
}

type modelRow struct {
	Revision int64
	Key      string
	Deleted  bool
	JSON     string
	Prev     int64 // revision that was replaced, 0 if the key was absent
}

func (m *model) state(resource string, revision int64) map[string]int64 {
	state := map[string]int64{}
	for _, r := range m.rows {
		switch {
		case r.Revision > revision || !strings.HasPrefix(r.Key, resource):
		case r.Deleted:
			delete(state, r.Key)
		default:
			state[r.Key] = r.Revision
		}
	}
	return state
}

func (m *model) events(prefix string, after, through int64) (rows []modelRow) {
	for _, r := range m.rows {
		if strings.HasPrefix(r.Key, prefix) && r.Revision > after && r.Revision <= through {
			rows = append(rows, r)
		}
	}
	return rows
}

func (m *model) head() int64 {
	if len(m.rows) == 0 {
		return 0
	}
	return m.rows[len(m.rows)-1].Revision
}

func (m *model) add(e *Entry, deleted bool, prev int64) {
	m.rows = append(m.rows, modelRow{e.Revision, e.Key, deleted, string(e.Value), prev})
}

func rowsOf(events []*Event) (rows []modelRow) {
	for _, ev := range events {
		r := modelRow{ev.Entry.Revision, ev.Entry.Key, ev.Type == Delete, string(ev.Entry.Value), 0}
		if ev.Prev != nil {
			r.Prev = ev.Prev.Revision
		}
		rows = append(rows, r)
	}
	return rows
}

// actor does random operations on a store and compares each with the model.
type actor struct {
	t        *testing.T
	r        *rand.Rand
	s        *Store
	m        model
	watchers []*watched
}

type watched struct {
	*Watcher
	prefix string
	pos    int64
}

func TestRandomOperations(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			window := []int{1, 3000, 20000, 1 << 20}[r.IntN(4)]
			s := newStore(t, Options{WindowBytes: window, WindowAge: []time.Duration{0, time.Millisecond}[r.IntN(2)], Snapshots: 1 + r.IntN(4), StateBytes: []int{0, 1, 3000}[seed%3]})
			a := &actor{t: t, r: r, s: s}
			for range 600 {
				a.step()
			}
			a.finish()
		})
	}
}

func (a *actor) step() {
	switch n := a.r.IntN(100); {
	case n < 45:
		a.write()
	case n < 50:
		a.conflict()
	case n < 60:
		a.get()
	case n < 72:
		a.list()
	case n < 80:
		a.watch()
	case n < 97:
		a.poll()
	default:
		a.compact()
	}
}

func (a *actor) key() string {
	resource := []string{maps, pods}[a.r.IntN(2)]
	return fmt.Sprintf("%sns%d/%d", resource, a.r.IntN(3), a.r.IntN(5))
}

// prefix returns a resource and a prefix within it: all, a namespace, or one object.
func (a *actor) prefix() (resource, prefix string) {
	key := a.key()
	resource = object.ResourceOf(key)
	return resource, key[:[]int{len(resource), strings.LastIndexByte(key, '/') + 1, len(key)}[a.r.IntN(3)]]
}

func (a *actor) revision() int64 { return a.r.Int64N(a.m.head() + 1) }

func (a *actor) write() {
	key := a.key()
	c := Change{Key: key, Expect: a.m.state(key, a.m.head())[key], Value: value(key, a.r.IntN(1000))}
	c.Delete = c.Expect != 0 && a.r.IntN(3) == 0
	a.m.add(commit(a.t, a.s, c), c.Delete, c.Expect)
}

func (a *actor) conflict() {
	key := a.key()
	now := a.m.state(key, a.m.head())[key]
	c := Change{Key: key, Expect: a.revision(), Value: value(key, 0)}
	if c.Expect == now {
		return
	}
	_, err := a.s.Commit(context.Background(), c)
	var conflict *ConflictError
	if !errors.As(err, &conflict) || !IsSame(conflict.Current, a.s.Get(key)) {
		a.t.Fatalf("expected %d where %d is: %v", c.Expect, now, err)
	}
}

func (a *actor) get() {
	key := a.key()
	var got int64
	if e := a.s.Get(key); e != nil {
		got = e.Revision
	}
	if want := a.m.state(key, a.m.head())[key]; got != want {
		a.t.Fatalf("get %s: %d, want %d", key, got, want)
	}
}

func (a *actor) list() {
	resource, prefix := a.prefix()
	revision := a.revision()
	view, err := a.s.At(context.Background(), resource, revision)
	if revision < a.m.floor {
		if !errors.Is(err, changelog.ErrCompacted) {
			a.t.Fatalf("at %d, floor %d: %v", revision, a.m.floor, err)
		}
		return
	}
	if err != nil {
		a.t.Fatalf("at %d: %v", revision, err)
	}
	if a.r.IntN(2) == 0 {
		a.s.Keep(a.s.Current(resource))
	}
	a.compareView(view, resource, prefix)
	a.compareView(a.s.Current(resource), resource, prefix)
}

func (a *actor) compareView(view View, resource, prefix string) {
	ctx := context.Background()
	from, to := changelog.RangeOf(prefix)
	want := a.m.state(prefix, view.Revision())
	if diff := cmp.Diff(want, revisions(a.t, view, from, to)); diff != "" {
		a.t.Fatalf("state of %s at %d:\n%s", prefix, view.Revision(), diff)
	}
	if n, err := view.Count(ctx, from, to); err != nil || int(n) != len(want) {
		a.t.Fatalf("count of %s at %d: %d, %v; want %d", prefix, view.Revision(), n, err, len(want))
	}
	key := a.key()
	e, err := view.Get(ctx, key)
	if object.ResourceOf(key) == resource && (err != nil || (e == nil) != (a.m.state(key, view.Revision())[key] == 0)) {
		a.t.Fatalf("get %s at %d: %v, %v", key, view.Revision(), e, err)
	}
}

func (a *actor) watch() {
	resource, prefix := a.prefix()
	after := a.revision()
	w, err := a.s.Watch(resource, prefix, after)
	if after < a.m.floor {
		if !errors.Is(err, changelog.ErrCompacted) {
			a.t.Fatalf("watch after %d, floor %d: %v", after, a.m.floor, err)
		}
		return
	}
	if err != nil {
		a.t.Fatal(err)
	}
	a.watchers = append(a.watchers, &watched{w, prefix, after})
}

func (a *actor) poll() {
	if len(a.watchers) > 0 {
		i := a.r.IntN(len(a.watchers))
		if !a.pollOne(a.watchers[i]) {
			a.watchers[i].Close()
			a.watchers = append(a.watchers[:i], a.watchers[i+1:]...)
		}
	}
}

func (a *actor) pollOne(w *watched) bool {
	events, through, err := w.Poll(context.Background())
	if errors.Is(err, changelog.ErrCompacted) && w.pos < a.m.floor {
		return false
	}
	if err != nil || through < w.pos {
		a.t.Fatalf("poll %s from %d to %d: %v", w.prefix, w.pos, through, err)
	}
	if diff := cmp.Diff(a.m.events(w.prefix, w.pos, through), rowsOf(events)); diff != "" {
		a.t.Fatalf("events of %s from %d to %d:\n%s", w.prefix, w.pos, through, diff)
	}
	w.pos = through
	return true
}

func (a *actor) compact() {
	if a.r.IntN(3) != 0 || a.m.head() == 0 {
		return
	}
	to := min(a.m.floor+a.r.Int64N(60), a.m.head()-1)
	if err := a.s.CompactTo(context.Background(), to); err != nil {
		a.t.Fatal(err)
	}
	a.m.floor = max(a.m.floor, to)
	if a.s.Floor() != a.m.floor {
		a.t.Fatalf("floor %d, want %d", a.s.Floor(), a.m.floor)
	}
}

// finish polls every watcher to the end.
func (a *actor) finish() {
	for _, w := range a.watchers {
		for w.pos < a.m.head() && a.pollOne(w) {
		}
		w.Close()
	}
	if n := a.s.Stats().Watchers; n != 0 {
		a.t.Errorf("%d watchers left", n)
	}
}
