package logtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// model is the log as a slice.
type model struct {
	all          []changelog.Row // every row ever written
	floor, swept int64
}

func (m *model) head() int64 {
	if len(m.all) == 0 {
		return m.floor
	}
	return max(m.floor, m.all[len(m.all)-1].Revision)
}

// at returns the newest row of each key at revision, tombstones included.
func (m *model) at(revision int64) map[string]changelog.Row {
	newest := map[string]changelog.Row{}
	for _, r := range m.all {
		if r.Revision <= revision {
			newest[r.Key] = r
		}
	}
	return newest
}

// rows returns the rows that compaction has left.
func (m *model) rows() []changelog.Row {
	swept := m.at(m.swept)
	var out []changelog.Row
	for _, r := range m.all {
		if r.Revision > m.swept || swept[r.Key].Revision == r.Revision && !r.Deleted {
			out = append(out, r)
		}
	}
	return out
}

func (m *model) state(from, to string, revision int64) []changelog.Row {
	newest := m.at(revision)
	var out []changelog.Row
	for _, key := range slices.Sorted(maps.Keys(newest)) {
		if r := newest[key]; key >= from && key < to && !r.Deleted {
			out = append(out, r)
		}
	}
	return out
}

func (m *model) steps(from, to string, after, through int64) []changelog.Step {
	last := map[string]changelog.Row{}
	var out []changelog.Step
	for _, r := range m.all {
		if r.Revision > after && r.Revision <= through && r.Key >= from && r.Key < to {
			s := changelog.Step{Row: r}
			if p, ok := last[r.Key]; ok && !p.Deleted {
				s.Prev = &p
			}
			out = append(out, s)
		}
		last[r.Key] = r
	}
	return out
}

func (m *model) append(batch []changelog.Change) []changelog.Result {
	results := make([]changelog.Result, len(batch))
	kept := map[string]changelog.Row{}
	for _, r := range m.rows() {
		kept[r.Key] = r
	}
	next := m.head() + 1
	for i, c := range batch {
		found, exists := kept[c.Key]
		live := exists && !found.Deleted
		if live && c.Expect != found.Revision || !live && (c.Expect != 0 || c.Delete) {
			results[i] = changelog.Result{Found: found.Revision, FoundDeleted: found.Deleted}
			continue
		}
		created := next
		if live {
			created = found.CreateRevision
		}
		m.all = append(m.all, changelog.Row{Revision: next, Key: c.Key, CreateRevision: created, Deleted: c.Delete, Value: c.Value})
		results[i] = changelog.Result{Revision: next, CreateRevision: created}
		next++
	}
	return results
}

func (m *model) compact(through int64, limit int) {
	if len(m.all) == 0 {
		return
	}
	through = min(through, m.all[len(m.all)-1].Revision-1)
	if through <= m.swept {
		return
	}
	upto, n := through, 0
	for _, r := range m.rows() {
		if r.Revision > m.swept && r.Revision <= through {
			if n++; n == limit {
				upto = r.Revision
				break
			}
		}
	}
	m.swept, m.floor = upto, max(m.floor, upto)
}

var namespaces = []string{"a", "a-b", "B", "ü"}

func randomKey(r *rand.Rand) string {
	return fmt.Sprintf("/registry/core/pods/%s/%d", namespaces[r.IntN(len(namespaces))], r.IntN(6))
}

// randomBatch mostly holds: what it expects is mostly what m has.
func randomBatch(r *rand.Rand, m *model) []changelog.Change {
	newest := m.at(m.head())
	used := map[string]bool{}
	var batch []changelog.Change
	for range 1 + r.IntN(6) {
		c := changelog.Change{Key: randomKey(r), Value: fmt.Appendf(nil, "%d", r.IntN(1e6))}
		if used[c.Key] {
			continue
		}
		used[c.Key] = true
		if row := newest[c.Key]; row.Revision != 0 && !row.Deleted {
			c.Expect, c.Delete = row.Revision, r.IntN(3) == 0
		}
		if r.IntN(5) == 0 {
			c.Expect = r.Int64N(m.head() + 2)
		}
		batch = append(batch, c)
	}
	return batch
}

// TestRandomOperations does the same on every dialect and on the model; all histories
// must be equal to the model's, and so to each other.
func TestRandomOperations(t *testing.T) {
	seed := rand.Uint64()
	forEach(t, func(t *testing.T, db database) {
		t.Logf("seed %d", seed)
		l, m, r := db.open(t), &model{}, rand.New(rand.NewPCG(seed, 1))
		for i := 0; i < 300 && !t.Failed(); i++ {
			operate(t, l, m, r)
		}
		diff(t, "history", m.rows(), forget(l.rows()))
		diff(t, "head", changelog.Head{Revision: m.head(), Floor: m.floor}, l.head())
	})
}

func operate(t *testing.T, l log, m *model, r *rand.Rand) {
	t.Helper()
	from, to := changelog.RangeOf("/registry/core/pods/" + namespaces[r.IntN(len(namespaces))] + "/")
	if r.IntN(2) == 0 {
		from, to = first, end
	}
	switch op := r.IntN(20); {
	case op < 11:
		batch := randomBatch(r, m)
		diff(t, "append", m.append(batch), l.append(batch...).Results)
	case op < 13:
		through, limit := m.head()-r.Int64N(20), 1+r.IntN(30)
		c, err := l.Compact(context.Background(), through, limit, nil)
		if err != nil {
			t.Fatal(err)
		}
		m.compact(through, limit)
		c.Deleted = 0 // the rows are compared at the end
		diff(t, "compact", changelog.Compacted{Floor: m.floor, Swept: m.swept}, c)
	case op < 14 && r.IntN(10) == 0:
		revision := m.head() + r.Int64N(50) - 5
		if err := l.Raise(context.Background(), revision); err != nil {
			t.Fatal(err)
		}
		if revision > m.head() {
			m.floor = revision
		}
	case op < 17:
		after := r.Int64N(m.head() + 1)
		if after < m.floor {
			_, err := l.Steps(context.Background(), from, to, after, m.head(), 10)
			if !errors.Is(err, changelog.ErrCompacted) {
				t.Errorf("steps after %d below floor %d: %v", after, m.floor, err)
			}
			return
		}
		diff(t, "steps", m.steps(from, to, after, m.head()), forgetSteps(l.steps(from, to, after, m.head())))
	default:
		revision := m.floor + r.Int64N(m.head()-m.floor+1)
		want := m.state(from, to, revision)
		diff(t, "state", want, forget(l.state(from, to, revision)))
		n, err := l.Count(context.Background(), from, to, revision)
		if err != nil || n != int64(len(want)) {
			t.Errorf("count %d, %v; want %d", n, err, len(want))
		}
	}
}
