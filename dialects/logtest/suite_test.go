package logtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// database is an empty database of one dialect.
type database struct {
	name string
	dsn  string
}

// forEach runs test on a fresh database of each dialect, on all of them side by side: the dialects begin when the
// function that called forEach has returned.
func forEach(t *testing.T, test func(t *testing.T, db database)) {
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, database{"memory", "sqlite://:memory:"})
	})
	Each(t, func(t *testing.T, d Dialect) { test(t, database{d.Name, d.Fresh(t)}) })
}

// forEachShared does so for the dialects that several processes may have open.
func forEachShared(t *testing.T, test func(t *testing.T, db database)) {
	EachShared(t, func(t *testing.T, d Dialect) { test(t, database{d.Name, d.Fresh(t)}) })
}

// log is a Log under test; its methods fail the test instead of returning errors.
type log struct {
	changelog.Log
	t testing.TB
}

// open opens the database. When the test ends the log's invariants are checked and it
// is closed.
func (db database) open(t testing.TB) log {
	t.Helper()
	l := log{openDSN(t, db.dsn), t}
	t.Cleanup(func() {
		if !t.Failed() {
			l.check()
		}
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

func openDSN(t testing.TB, dsn string) changelog.Log {
	t.Helper()
	l, err := dialects.Open(context.Background(), dsn, dialects.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l log) append(batch ...changelog.Change) changelog.Appended {
	l.t.Helper()
	a, err := l.Append(context.Background(), batch)
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

// write appends one change that must hold and returns its revision.
func (l log) write(c changelog.Change) int64 {
	l.t.Helper()
	r := l.append(c).Results[0]
	if r.Revision == 0 {
		l.t.Fatalf("%s: expected %d, found %d (tombstone: %v)", c.Key, c.Expect, r.Found, r.FoundDeleted)
	}
	return r.Revision
}

func (l log) put(key string, expect int64, value string) int64 {
	l.t.Helper()
	return l.write(changelog.Change{Key: key, Expect: expect, Value: []byte(value)})
}

func (l log) delete(key string, expect int64, last string) int64 {
	l.t.Helper()
	return l.write(changelog.Change{Key: key, Expect: expect, Delete: true, Value: []byte(last)})
}

func (l log) head() changelog.Head {
	l.t.Helper()
	h, err := l.Head(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	return h
}

func (l log) rows() []changelog.Row {
	l.t.Helper()
	var all []changelog.Row
	for after := int64(0); ; {
		rows, err := l.Rows(context.Background(), after, 500)
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(all, rows...)
		if !changelog.Full(rows, 500) {
			return all
		}
		after = rows[len(rows)-1].Revision
	}
}

// state reads all of [from, to) at revision in pages.
func (l log) state(from, to string, revision int64) []changelog.Row {
	l.t.Helper()
	var all []changelog.Row
	for {
		rows, err := l.State(context.Background(), from, to, revision, 7)
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(all, rows...)
		if !changelog.Full(rows, 7) {
			break
		}
		from = rows[len(rows)-1].Key + "\x00"
		if to <= from {
			break
		}
	}
	return all
}

func (l log) steps(from, to string, after, through int64) []changelog.Step {
	l.t.Helper()
	var all []changelog.Step
	for {
		steps, err := l.Steps(context.Background(), from, to, after, through, 7)
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(all, steps...)
		if len(steps) < 7 {
			return all
		}
		after = steps[len(steps)-1].Revision
	}
}

// compact calls Compact until through is swept.
func (l log) compact(through int64, limit int) (deleted int64) {
	l.t.Helper()
	through = min(through, l.head().Revision-1)
	for {
		c, err := l.Compact(context.Background(), through, limit, nil)
		if err != nil {
			l.t.Fatal(err)
		}
		deleted += c.Deleted
		if c.Swept >= through {
			return deleted
		}
	}
}

// check asserts what holds for every log: revisions and times rise, an incarnation
// begins with its create revision and a row of a key follows another only as the
// contract allows, and nothing below what was swept is superseded.
func (l log) check() {
	l.t.Helper()
	head, floor := int64(0), l.head().Floor
	at := int64(0)
	last := map[string]changelog.Row{}
	for _, r := range l.rows() {
		prev, known := last[r.Key]
		switch {
		case r.Revision <= head:
			l.t.Errorf("revision %d after %d", r.Revision, head)
		case r.At < at:
			l.t.Errorf("revision %d: time %d after %d", r.Revision, r.At, at)
		case r.CreateRevision > r.Revision:
			l.t.Errorf("revision %d: created at %d", r.Revision, r.CreateRevision)
		case known && !prev.Deleted && r.CreateRevision != prev.CreateRevision:
			l.t.Errorf("revision %d: created at %d, its predecessor at %d", r.Revision, r.CreateRevision, prev.CreateRevision)
		case (!known && r.Revision > floor || known && prev.Deleted) && r.CreateRevision != r.Revision:
			l.t.Errorf("revision %d: created at %d, but the key was absent", r.Revision, r.CreateRevision)
		}
		head, at, last[r.Key] = r.Revision, r.At, r
	}
	if l.noted() >= 0 {
		l.wantNoted()
	}
}

// within runs f and fails if it has not come back in time; generous, for busy machines.
func within(t testing.TB, what string, f func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if err := f(ctx); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// forget clears the times, which no two runs share.
func forget(rows []changelog.Row) []changelog.Row {
	out := slices.Clone(rows)
	for i := range out {
		out[i].At = 0
	}
	return out
}

func diff(t testing.TB, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func keyOf(i int) string { return fmt.Sprintf("/registry/core/configmaps/default/k%05d", i) }

const (
	first = "/registry/"
	end   = "/registry0"
)
