package logtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// retentionModel is every row ever written, under rules that change.
type retentionModel struct {
	model
	l         log
	r         *rand.Rand
	retention *changelog.Retention
}

var retentions = []*changelog.Retention{
	nil,
	changelog.NewRetention(),
	forever,
	changelog.NewRetention(changelog.Rule{Resource: "*", For: time.Hour}, changelog.Rule{Resource: "secrets"}),
	changelog.NewRetention(changelog.Rule{Resource: "*.apps", For: 30 * time.Hour}, changelog.Rule{Resource: "configmaps", For: changelog.KeepForever, Count: 2}),
	changelog.NewRetention(changelog.Rule{Resource: "*", For: 10 * time.Hour, Count: 3}),
}

// TestRandomPast asks for the past at every revision after random histories under random rules: an
// answer is exact, or there is none.
func TestRandomPast(t *testing.T) {
	seed := rand.Uint64()
	forEach(t, func(t *testing.T, db database) {
		t.Logf("seed %d", seed)
		m := &retentionModel{l: db.open(t), r: rand.New(rand.NewPCG(seed, 1)), retention: forever}
		known := 0
		for i := 0; i < 100 && !t.Failed(); i++ {
			m.operate()
			known += m.ask(m.r.Int64N(m.head() + 2))
		}
		for revision := int64(0); revision <= m.head() && !t.Failed(); revision++ {
			known += m.ask(revision)
		}
		m.history(changelog.HistoryQuery{Through: m.head()})
		t.Logf("%d answers, %d revisions, floor %d", known, m.head(), m.l.head().Floor)
	})
}

func (m *retentionModel) key() string {
	resource := []string{configs, secrets, apps}[m.r.IntN(3)]
	return fmt.Sprintf("%s%s/%d", resource, namespaces[m.r.IntN(len(namespaces))], m.r.IntN(2))
}

func (m *retentionModel) write() {
	newest := m.at(m.head())
	var batch []changelog.Change
	used := map[string]bool{}
	for range 1 + m.r.IntN(6) {
		c := changelog.Change{Key: m.key(), Value: fmt.Appendf(nil, "%d", m.r.IntN(1e6))}
		if used[c.Key] {
			continue
		}
		used[c.Key] = true
		if row := newest[c.Key]; row.Revision != 0 && !row.Deleted {
			c.Expect, c.Delete = row.Revision, m.r.IntN(3) == 0
		}
		batch = append(batch, c)
	}
	for i, r := range m.l.append(batch...).Results {
		c := batch[i]
		if r.Revision == 0 {
			m.l.t.Fatalf("%s: expected %d, found %d", c.Key, c.Expect, r.Found)
		}
		m.all = append(m.all, changelog.Row{Revision: r.Revision, Key: c.Key, CreateRevision: r.CreateRevision, Deleted: c.Delete, Value: c.Value})
	}
}

func (m *retentionModel) operate() {
	m.l.t.Helper()
	ctx, now := context.Background(), time.Now().Add(time.Duration(m.r.IntN(40)-20)*time.Hour).UnixMilli()
	var err error
	switch op := m.r.IntN(42); {
	case op < 22:
		m.write()
	case op < 32:
		_, err = m.l.Compact(ctx, m.head()-m.r.Int64N(10), 1+m.r.IntN(30), m.retention)
	case op < 35:
		_, err = m.l.Trim(ctx, m.retention, now, 1+m.r.IntN(20))
	case op < 37:
		_, err = m.l.Refit(ctx, m.retention, m.r.Int64N(m.head()+1), 1+m.r.IntN(30))
	case op < 38:
		_, err = m.l.Forget(ctx, m.key())
	case op < 40:
		_, err = m.l.Bound(ctx, 1000+m.r.Int64N(4000), 1+m.r.IntN(20))
	case op < 41 && m.r.IntN(3) == 0:
		m.retention = retentions[m.r.IntN(len(retentions))]
	}
	if err != nil {
		m.l.t.Fatal(err)
	}
	if m.l.noted() >= 0 {
		m.l.wantNoted()
	}
}

// ask compares the past of several ranges at a revision, and returns of how many it is known.
func (m *retentionModel) ask(revision int64) (known int) {
	m.l.t.Helper()
	ranges := [][2]string{{first, end}}
	for _, prefix := range []string{configs, secrets, apps, apps + "a/"} {
		from, to := changelog.RangeOf(prefix)
		ranges = append(ranges, [2]string{from, to})
	}
	for range 3 {
		key := m.key()
		ranges = append(ranges, [2]string{key, key + "\x00"})
	}
	for _, r := range ranges {
		got, ok := m.l.past(r[0], r[1], revision)
		if ok {
			known++
			diff(m.l.t, fmt.Sprintf("[%q, %q) at %d", r[0], r[1], revision), m.state(r[0], r[1], revision), forget(got))
		} else if revision >= m.l.head().Floor {
			m.l.t.Errorf("%d is not below the floor, but not known", revision)
		}
	}
	return known
}

// history compares the changes that are there with those that were made, and returns their number.
func (m *retentionModel) history(q changelog.HistoryQuery) (n int) {
	m.l.t.Helper()
	made := map[int64]changelog.Row{}
	for _, r := range m.all {
		made[r.Revision] = r
	}
	q.Limit, q.Sizes = 7, true
	var got, want []changelog.Row
	for {
		rows, err := m.l.History(context.Background(), q)
		if err != nil {
			m.l.t.Fatal(err)
		}
		for _, r := range m.l.whole(rows) {
			r.AuditID = nil
			got, want = append(got, r), append(want, made[r.Revision])
			if q.From != "" && (r.Key < q.From || r.Key >= q.To) {
				m.l.t.Errorf("%s is not asked for", r.Key)
			}
		}
		if len(rows) < q.Limit {
			break
		}
		if last := rows[len(rows)-1].Revision; q.Oldest {
			q.After = last
		} else {
			q.Through = last - 1
		}
	}
	diff(m.l.t, "history", want, forget(got))
	for i := 1; i < len(got); i++ {
		if got[i].Revision > got[i-1].Revision != q.Oldest {
			m.l.t.Errorf("revision %d after %d", got[i].Revision, got[i-1].Revision)
		}
	}
	return len(got)
}

// TestKeepAll: with everything kept from the start, and compacted in random steps, all revisions are
// known.
func TestKeepAll(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		m := &retentionModel{l: db.open(t), r: rand.New(rand.NewPCG(rand.Uint64(), 1)), retention: forever}
		for range 40 {
			if m.write(); m.r.IntN(2) == 0 {
				if _, err := m.l.Compact(t.Context(), m.head()-m.r.Int64N(10), 1+m.r.IntN(30), m.retention); err != nil {
					t.Fatal(err)
				}
			}
		}
		for revision := int64(0); revision <= m.head(); revision++ {
			if known := m.ask(revision); known != 8 {
				t.Fatalf("%d of 8 ranges are known at %d", known, revision)
			}
		}
		secretsEnd := secrets + "\xff"
		ofSecrets := 0
		for _, r := range m.all {
			if r.Key >= secrets && r.Key < secretsEnd {
				ofSecrets++
			}
		}
		for _, oldest := range []bool{false, true} {
			if n := m.history(changelog.HistoryQuery{Through: m.head(), Oldest: oldest}); n != len(m.all) {
				t.Errorf("%d of %d changes are there", n, len(m.all))
			}
			if n := m.history(changelog.HistoryQuery{Through: m.head(), Oldest: oldest, From: secrets, To: secretsEnd}); n != ofSecrets {
				t.Errorf("%d of %d changes of secrets are there", n, ofSecrets)
			}
			if n := m.history(changelog.HistoryQuery{After: 10, Through: 20, Oldest: oldest}); n != 10 {
				t.Errorf("%d of 10 changes are there", n)
			}
		}
		if found, at, err := m.l.Time(t.Context(), 2); err != nil || found != 2 || at == 0 {
			t.Errorf("time of an old version: %d, %d, %v", found, at, err)
		}
	})
}
