package sqlstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

func onNode(node string) Predicate {
	return Predicate{object.FieldOr("", "spec", "node"), []string{node}}
}

func podOn(name, node string) []byte {
	return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q},"spec":{"node":%q}}`, name, node)
}

// woken tells which watchers have been woken since their last Poll.
func woken(watchers []*Watcher) (numbers []int) {
	for i, w := range watchers {
		select {
		case <-w.Wait():
			numbers = append(numbers, i)
		default:
		}
	}
	return numbers
}

// TestWatchersOfOneTerm are woken by changes of entries that have their term, or had it, and by no others.
func TestWatchersOfOneTerm(t *testing.T) {
	s := newStore(t, Options{})
	var watchers []*Watcher
	for i := range 200 {
		w, err := s.WatchWhere(pods, pods, s.Revision(), []Predicate{onNode(fmt.Sprintf("n%d", i))})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		watchers = append(watchers, w)
	}
	drain := func() {
		for _, w := range watchers {
			for range 2 { // the first Poll after a change takes it, the second one finds that there is no more
				if _, through, err := w.Poll(t.Context()); err != nil || through != s.Revision() {
					t.Fatalf("through %d, %v; the head is %d", through, err, s.Revision())
				}
			}
		}
	}
	drain()
	var last *Entry
	for _, step := range []struct {
		node    string
		deletes bool
		want    []int
	}{
		{"n7", false, []int{7}},
		{"n7", false, []int{7}},
		{"n9", false, []int{7, 9}},
		{"", false, []int{9}},
		{"elsewhere", false, nil},
		{"n199", false, []int{199}},
		{"n199", true, []int{199}},
	} {
		c := Change{Key: pods + "ns/a", Value: podOn("a", step.node), Delete: step.deletes}
		if last != nil {
			c.Expect = last.Revision
		}
		last = commit(t, s, c)
		got := woken(watchers)
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("to %q: the woken watchers\n%s", step.node, diff)
		}
		for _, i := range got {
			events, _, err := watchers[i].Poll(t.Context())
			if err != nil || len(events) != 1 || events[0].Entry != last && !step.deletes {
				t.Errorf("watcher %d: %v, %v", i, events, err)
			}
		}
		drain()
	}
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(woken(watchers)); n != len(watchers) {
		t.Errorf("%d watchers are woken by a state that was read anew", n)
	}
	drain()
}

// TestWatchersWhere compares what watchers with predicates get with what one without gets, while watchers come
// and go, fall out of the window, and the state is read anew.
func TestWatchersWhere(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			s := newStore(t, Options{WindowBytes: []int{1, 20000, 1 << 20}[r.IntN(3)]})
			var m selectables
			type watching struct {
				*Watcher
				where     []Predicate
				after     int64
				got       []int64
				delivered int64
			}
			var all []*watching
			for range 800 {
				switch n := r.IntN(20); {
				case n < 9:
					writeLabelled(t, s, r)
				case n < 11:
					where := []Predicate{somePredicate(r), somePredicate(r)}[:1+r.IntN(2)]
					after := r.Int64N(s.Revision() + 1)
					w, err := s.WatchWhere(pods, pods, after, where)
					if err != nil {
						t.Fatal(err)
					}
					all = append(all, &watching{w, where, after, nil, after})
				case n < 19 && len(all) > 0:
					w := all[r.IntN(len(all))]
					w.got, w.delivered = append(w.got, m.pollWhere(t, w.Watcher, w.where)...), s.Revision()
				case r.IntN(4) == 0:
					if err := s.Reload(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
			full, err := s.Watch(pods, pods, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer full.Close()
			events := poll(t, full, s.Revision())
			for _, w := range all {
				w.got = append(w.got, m.pollWhere(t, w.Watcher, w.where)...)
				w.Close()
				var want []int64
				for _, ev := range events {
					if ev.Entry.Revision > w.after && m.concerns(t, ev, w.where) {
						want = append(want, ev.Entry.Revision)
					}
				}
				if diff := cmp.Diff(want, w.got); diff != "" {
					t.Errorf("%q after %d:\n%s", w.where, w.after, diff)
				}
			}
		})
	}
}

// concerns is the model: what a watch of entries that satisfy all of where has to see.
func (m *selectables) concerns(t testing.TB, ev *Event, where []Predicate) bool {
	before, after := ev.Prev != nil, ev.Type == Put
	for _, p := range where {
		before = before && m.satisfies(t, ev.Prev, p)
		after = after && m.satisfies(t, ev.Entry, p)
	}
	return before || after
}

// pollWhere takes all events that there are, and returns the revisions of those that concern where.
func (m *selectables) pollWhere(t testing.TB, w *Watcher, where []Predicate) (revisions []int64) {
	t.Helper()
	for last := int64(-1); ; {
		events, through, err := w.Poll(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			if m.concerns(t, ev, where) {
				revisions = append(revisions, ev.Entry.Revision)
			}
		}
		if through == last && len(events) == 0 {
			return revisions
		}
		last = through
	}
}
