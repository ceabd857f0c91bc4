package sqlstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// labelled is a stored object with random labels and fields, some of which are written in unusual ways.
func labelled(r *rand.Rand, key string) []byte {
	var labels []string
	for _, label := range []string{"app", "tier"} {
		switch r.IntN(8) {
		case 0:
		case 1:
			labels = append(labels, fmt.Sprintf(`"%s":"\u0061%d"`, label, r.IntN(3)))
		default:
			labels = append(labels, fmt.Sprintf(`"%s":"a%d"`, label, r.IntN(12)))
		}
	}
	spec := []string{`{}`, `{"node":"n%d"}`, `{"node":"n%d"}`, `{"node":null,"more":%d}`, `{"node":%d}`, `{"more":[{"node":"n%d"}]}`}[r.IntN(6)]
	if strings.Contains(spec, "%d") {
		spec = fmt.Sprintf(spec, r.IntN(5))
	}
	name := key[strings.LastIndexByte(key, '/')+1:]
	return fmt.Appendf(nil, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"annotations":{"x":"\"}"},"labels":{%s}},"spec":%s}`,
		name, strings.Join(labels, ","), spec)
}

// selectable is what the model knows of an object.
type selectable struct {
	Metadata struct {
		Name   string
		Labels map[string]string
	}
	Spec map[string]any
}

// selectables has the objects of a store, by revision.
type selectables struct{ decoded sync.Map }

func (m *selectables) of(t testing.TB, e *Entry) *selectable {
	if o, ok := m.decoded.Load(e.Revision); ok {
		return o.(*selectable)
	}
	o := new(selectable)
	if err := json.Unmarshal(e.Value, o); err != nil {
		t.Error(err)
	}
	m.decoded.Store(e.Revision, o)
	return o
}

func (m *selectables) satisfies(t testing.TB, e *Entry, p Predicate) bool {
	o := m.of(t, e)
	kind, label, _ := strings.Cut(p.Attribute, "\x00")
	value, there := o.Metadata.Labels[label]
	switch kind {
	case "label":
		return there && slices.Contains(p.Terms, value)
	case "haslabel":
		return there
	case "name":
		return slices.Contains(p.Terms, o.Metadata.Name)
	}
	value = ""
	if node := o.Spec["node"]; node != nil {
		value = fmt.Sprint(node)
	}
	return slices.Contains(p.Terms, value)
}

func somePredicate(r *rand.Rand) Predicate {
	one := func(format string, n int) []string { return []string{fmt.Sprintf(format, r.IntN(n))} }
	label := []string{"app", "tier"}[r.IntN(2)]
	switch r.IntN(6) {
	case 0:
		return Predicate{object.HasLabel(label), []string{""}}
	case 1:
		return Predicate{object.Name(), one("%d", 100)}
	case 2:
		return Predicate{object.FieldOr("", "spec", "node"), append(one("n%d", 6), "")[:1+r.IntN(2)]}
	case 3:
		return Predicate{object.Label(label), []string{"a0", "a2", "none", "a7"}[r.IntN(2):]}
	}
	return Predicate{object.Label(label), one("a%d", 13)}
}

// checkSelect compares what a view selects with a scan of it. It returns how many entries Select has looked at.
func (m *selectables) checkSelect(t testing.TB, view View, prefix string, where []Predicate) (looked int) {
	t.Helper()
	var want, got []int64
	match := func(e *Entry) bool {
		return !slices.ContainsFunc(where, func(p Predicate) bool { return !m.satisfies(t, e, p) })
	}
	from, to := changelog.RangeOf(prefix)
	err := view.Scan(context.Background(), from, to, func(e *Entry) bool {
		if match(e) {
			want = append(want, e.Revision)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	last := ""
	err = view.Select(context.Background(), from, to, where, func(e *Entry) bool {
		if e.Key <= last || e.Key < from || e.Key >= to {
			t.Errorf("select in [%s, %s): %s after %s", from, to, e.Key, last)
		}
		last = e.Key
		looked++
		if match(e) {
			got = append(got, e.Revision)
		}
		return true
	})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q in %s at %d, scan against select:\n%s", where, prefix, view.Revision(), diff)
	}
	return looked
}

// TestIndexesEqualScans selects from views of the present and of several moments of the past, while objects
// change, indexes come and go, and the state is read anew.
func TestIndexesEqualScans(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 17))
			s := newStore(t, Options{IndexBytes: []int{0, 0, 20000, 5000}[r.IntN(4)], WindowBytes: []int{0, 20000}[r.IntN(2)], WindowAge: time.Hour, StateBytes: []int{0, 1, 40000}[seed%3]})
			var m selectables
			views := []View{s.Current(pods)}
			most, fewer := 0, 0
			for range 1500 {
				switch n := r.IntN(20); {
				case n < 10:
					writeLabelled(t, s, r)
				case n < 12:
					v := s.Current(pods)
					s.Keep(v)
					if views = append(views, v); len(views) > 5 {
						views = views[1:]
					}
				case n < 19:
					where := make([]Predicate, 1+r.IntN(2))
					for i := range where {
						where[i] = somePredicate(r)
					}
					v := views[r.IntN(len(views))]
					if r.IntN(2) == 0 {
						v = s.Current(pods)
					}
					prefix := []string{pods, pods + "ns1/"}[r.IntN(2)]
					from, to := changelog.RangeOf(prefix)
					all, _ := v.Count(t.Context(), from, to)
					if most++; m.checkSelect(t, v, prefix, where) < int(all) {
						fewer++
					}
				case r.IntN(6) == 0:
					s.DropIndexes(time.Now().Add(time.Hour))
					if st := s.Stats(); st.Indexes != 0 || st.IndexBytes != 0 {
						t.Errorf("%d indexes of %d bytes are left", st.Indexes, st.IndexBytes)
					}
				case seed%2 == 1 && r.IntN(6) == 0:
					s.Age()
				case r.IntN(6) == 0:
					if err := s.Reload(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
			if fewer < most/10 {
				t.Errorf("%d of %d selections have looked at less than all", fewer, most)
			}
		})
	}
}

// writeLabelled writes or deletes an object.
func writeLabelled(t testing.TB, s *Store, r *rand.Rand) {
	key := fmt.Sprintf("%sns%d/%d", pods, r.IntN(2), r.IntN(200))
	c := Change{Key: key}
	if e := s.Get(key); e != nil {
		c.Expect = e.Revision
		c.Delete = r.IntN(5) == 0
	}
	c.Value = labelled(r, key)
	commit(t, s, c)
}

// TestIndexesWhileWriting builds and reads indexes while others write.
func TestIndexesWhileWriting(t *testing.T) {
	s := newStore(t, Options{})
	var m selectables
	ctx, stop := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	writers.Go(func() {
		for r := rand.New(rand.NewPCG(1, 1)); ctx.Err() == nil; {
			writeLabelled(t, s, r)
		}
	})
	for i := range uint64(3) {
		readers.Go(func() {
			for r, n := rand.New(rand.NewPCG(i, 2)), 0; n < 300; n++ {
				if r.IntN(20) == 0 {
					s.DropIndexes(time.Now().Add(time.Hour))
				}
				m.checkSelect(t, s.Current(pods), pods, []Predicate{somePredicate(r)})
			}
		})
	}
	readers.Wait()
	stop()
	writers.Wait()
}
