package logtest

import (
	"context"
	"log/slog"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// raw is a Log of raw keys under test, with what its user has to remember: the newest row of
// each key, up to a row.
type raw struct {
	log
	newest map[string]changelog.Row
	seen   int64
}

// openRaw is open for raw keys.
func (db database) openRaw(t testing.TB) *raw {
	t.Helper()
	l, err := dialects.Open(context.Background(), db.dsn,
		dialects.Options{Kind: changelog.KindEtcd, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	r := &raw{log: log{l, t}, newest: map[string]changelog.Row{}}
	t.Cleanup(func() {
		if !t.Failed() {
			r.check()
		}
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

// op is a put of a key, or its deletion.
type op struct {
	key    string
	value  string
	lease  int64
	delete bool
}

func put(key, value string) op { return op{key: key, value: value} }
func del(key string) op        { return op{key: key, delete: true} }

// do writes ops as one revision, and what is decided about leases, and returns the revision.
func (l *raw) do(leases changelog.Decision, ops ...op) int64 {
	l.t.Helper()
	revision, err := l.try(leases, ops...)
	if err != nil {
		l.t.Fatal(err)
	}
	return revision
}

func (l *raw) write(ops ...op) int64 {
	l.t.Helper()
	return l.do(changelog.Decision{}, ops...)
}

func (l *raw) try(leases changelog.Decision, ops ...op) (revision int64, err error) {
	ask := changelog.Ask{After: l.seen, Limit: 1 << 20}
	var written []changelog.Row
	err = l.Transact(context.Background(), ask, func(f *changelog.Found) (changelog.Decision, error) {
		l.learn(f.Rows)
		revision, _ = changelog.Split(f.Revision)
		revision++
		d := leases
		d.Rows = l.rowsOf(changelog.FirstID(revision), f.At, ops)
		written = d.Rows
		return d, nil
	})
	if err == nil {
		l.learn(written)
	}
	return revision, err
}

// rowsOf makes rows of ops, which have ids from first on.
func (l *raw) rowsOf(first, at int64, ops []op) (rows []changelog.Row) {
	for i, o := range ops {
		r := changelog.Row{Revision: first + int64(i), Key: o.key, Deleted: o.delete, At: at, Value: []byte(o.value), Lease: o.lease}
		old, known := l.newest[o.key]
		r.CreateRevision, r.Version = r.Revision, 1
		if known && !old.Deleted {
			r.CreateRevision, r.Version = old.CreateRevision, old.Version+1
		}
		if o.delete {
			r.Version, r.Value = 0, nil
		}
		rows = append(rows, r)
	}
	return rows
}

func (l *raw) learn(rows []changelog.Row) {
	for _, r := range rows {
		l.newest[r.Key], l.seen = r, max(l.seen, r.Revision)
	}
}

// grant makes leases that expire in so many milliseconds, with a TTL of 100 s.
func (l *raw) grant(in int64, ids ...int64) {
	l.t.Helper()
	err := l.Transact(context.Background(), changelog.Ask{Leases: ids}, func(f *changelog.Found) (d changelog.Decision, err error) {
		for _, id := range ids {
			d.Grant = append(d.Grant, changelog.Lease{ID: id, TTL: 100, Expires: f.Now + in})
		}
		return d, nil
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// leases returns the ids of all leases.
func (l *raw) leases() (ids []int64) {
	l.t.Helper()
	leases, _, err := l.Leases(context.Background(), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, lease := range leases {
		ids = append(ids, lease.ID)
	}
	return ids
}

// exec runs a statement without plinth.
func (db database) exec(t testing.TB, query string) {
	t.Helper()
	if _, err := db.sql(t).Exec(query); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}
