package etcd

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func leaseOf(id, ttl int64) changelog.Lease { return changelog.Lease{ID: id, TTL: ttl} }

// rows returns all rows of the log.
func (m *endpoint) rows(t testing.TB) (rows []changelog.Row) {
	t.Helper()
	err := m.eachRow(t.Context(), 0, 1<<62, func(r *changelog.Row) error { rows = append(rows, *r); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestLeaseExpires(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), true, Options{})
		m.grant(t, 1, 600)
		m.put(t, "kept", "x", 1)
		begun := time.Now()
		m.grant(t, 2, 2)
		m.grant(t, 3, 3)
		m.put(t, "a", "x", 2)
		m.put(t, "b", "x", 3)
		eventually(t, "expired", func() bool { return m.left(t, 2).TTL == -1 })
		if took := time.Since(begun); took < 2*time.Second {
			t.Errorf("a lease of 2 s was over after %v", took)
		}
		eventually(t, "expired", func() bool { return m.left(t, 3).TTL == -1 })
		if took := time.Since(begun); took < 3*time.Second {
			t.Errorf("a lease of 3 s was over after %v", took)
		}
		if got := m.keys(t); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("keys: %q", got)
		}
		if got := m.left(t, 1).TTL; got < 400 {
			t.Errorf("a lease of 600 s has %d left", got)
		}
	})
}

// Leases that are kept alive do not expire.
func TestLeaseKeptAlive(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", true, Options{})
	m.grant(t, 1, 30)
	m.grant(t, 2, 2)
	m.put(t, "a", "x", 1)
	m.put(t, "b", "x", 2)
	for m.left(t, 2).TTL != -1 {
		if got := m.keepAlive(t, 1); !slices.Equal(got, []int64{30}) {
			t.Fatalf("keep alive: %v", got)
		}
	}
	if got := m.keys(t); !slices.Equal(got, []string{"a"}) {
		t.Errorf("keys: %q", got)
	}
}

// Of several members each lease is revoked by one, and what one of them granted expires although
// it is gone.
func TestLeaseExpiresOnce(t *testing.T) {
	logtest.EachShared(t, func(t *testing.T, d logtest.Dialect) {
		dsn := d.Fresh(t)
		m1 := serveOn(t, dsn, true, Options{Name: "m1"})
		m2 := serveOn(t, dsn, true, Options{Name: "m2"})
		m3 := serveOn(t, dsn, true, Options{Name: "m3"})
		const leases = 30
		for id := range int64(leases) {
			m := []*endpoint{m1, m2, m3}[id%3]
			m.grant(t, id+1, 3)
			m.put(t, fmt.Sprintf("key%02d", id), "x", id+1)
		}
		m3.stop()
		eventually(t, "expired", func() bool { return len(m1.keys(t)) == 0 && len(m2.keys(t)) == 0 })
		deleted := make(map[string]int)
		revisions := make(map[int64]bool)
		for _, r := range m1.rows(t) {
			if r.Deleted {
				deleted[r.Key]++
				revision, _ := changelog.Split(r.Revision)
				revisions[revision] = true
			}
		}
		for key, n := range deleted {
			if n != 1 {
				t.Errorf("%s was deleted %d times", key, n)
			}
		}
		if len(deleted) != leases || len(revisions) != leases {
			t.Errorf("%d keys were deleted in %d revisions, want %d in as many", len(deleted), len(revisions), leases)
		}
	})
}

// Under the lock a lease that was renewed since the question is not revoked.
func TestExpireRenewed(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		m := serveOn(t, d.Fresh(t), false, Options{})
		m.grant(t, 1, 600)
		m.put(t, "a", "x", 1)
		if err := m.expire(t.Context(), []int64{1, 2}); err != nil {
			t.Fatal(err)
		}
		if got := m.left(t, 1); got.TTL <= 0 || len(m.keys(t)) != 1 {
			t.Errorf("a lease that has not expired: %v", got)
		}
	})
}

// The time in which no server ran does not count.
func TestLeaseSurvivesRestart(t *testing.T) {
	dsn := logtest.SQLite(t)
	m := serveOn(t, dsn, true, Options{})
	m.grant(t, 1, 20)
	m.put(t, "a", "x", 1)
	before := m.left(t, 1).TTL
	m.stop()
	const away = 5 * time.Second
	time.Sleep(away) // is what is tested
	begun := time.Now()
	m = serveOn(t, dsn, true, Options{})
	after := m.left(t, 1)
	// A second for what was cut off from before.
	if lost := time.Duration(before+1-after.TTL)*time.Second - time.Since(begun); lost >= away {
		t.Errorf("of %d s that were left %d are after %v without a server", before, after.TTL, away)
	}
	if len(after.Keys) != 1 || after.GrantedTTL != 20 {
		t.Errorf("after the restart: %v", after)
	}
}

// The first lease after a long time without any is not given that time.
func TestFirstLease(t *testing.T) {
	m := serveOn(t, "sqlite://:memory:", false, Options{})
	m.grant(t, 1, 600)
	if _, err := m.store.Keys().Renew(t.Context(), []int64{1}); err != nil {
		t.Fatal(err)
	}
	if err := m.expireNow(t, 1); err != nil {
		t.Fatal(err)
	}
	time.Sleep(beatMost + time.Second) // without a lease and without a beat
	m.grant(t, 2, 600)
	if err := m.ensureBeat(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := m.left(t, 2).TTL; got >= 600 {
		t.Errorf("%d s are left of 600", got)
	}
}

// expireNow revokes a lease as if it had expired.
func (m *endpoint) expireNow(t testing.TB, id int64) error {
	_, err := m.store.Keys().Do(t.Context(), sqlstore.Transaction{Leases: []int64{id}, Run: func(tx *sqlstore.Tx) error { tx.Revoke(id); return nil }})
	return err
}
