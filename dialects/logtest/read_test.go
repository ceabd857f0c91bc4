package logtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// history writes seven changes of three keys.
func history(l log) {
	l.put("/registry/a", 0, "a1")
	l.put("/registry/b", 0, "b2")
	l.put("/registry/a", 1, "a3")
	l.delete("/registry/b", 2, "b4")
	l.put("/registry/c", 0, "c5")
	l.put("/registry/b", 0, "b6")
	l.delete("/registry/a", 3, "a7")
}

func TestStateOfThePast(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		history(l)
		for revision, want := range []string{"", "a1", "a1 b2", "a3 b2", "a3", "a3 c5", "a3 b6 c5", "b6 c5"} {
			got, sep := "", ""
			for _, r := range l.state(first, end, int64(revision)) {
				got, sep = got+sep+string(r.Value), " "
			}
			if got != want {
				t.Errorf("state at %d: %q, want %q", revision, got, want)
			}
			n, err := l.Count(context.Background(), first, end, int64(revision))
			if err != nil || n != int64(len(want)+1)/3 {
				t.Errorf("count at %d: %d, %v", revision, n, err)
			}
		}
		rows, err := l.State(context.Background(), "/registry/b", "/registry/c", 7, 10)
		if err != nil || len(rows) != 1 || rows[0].CreateRevision != 6 {
			t.Errorf("state of a range: %+v, %v", rows, err)
		}
		if rows, err = l.State(context.Background(), first, end, 7, 1); err != nil || len(rows) != 1 || rows[0].Key != "/registry/b" {
			t.Errorf("limit counts a tombstone: %+v, %v", rows, err)
		}
	})
}

// TestPageBytes reads large rows that come after small ones: no page has more than PageBytes and a row, and together they
// have all.
func TestPageBytes(t *testing.T) {
	const small, large, weight = 40, 30, 1 << 20
	value := func(i int) string {
		if i < small {
			return "1"
		}
		return strings.Repeat("x", weight)
	}
	key := func(i int) string { return fmt.Sprintf("/registry/%03d", i) }
	check := func(t *testing.T, what string, page func(last *changelog.Row, limit int) ([]changelog.Row, error)) {
		t.Helper()
		const limit = 1000
		var last *changelog.Row
		n, pages := 0, 0
		for {
			rows, err := page(last, limit)
			if err != nil {
				t.Fatal(err)
			}
			bytes := 0
			for i := range rows {
				if rows[i].Key != key(n) || string(rows[i].Value) != value(n) {
					t.Fatalf("%s: row %d has the key %s and %d bytes", what, n, rows[i].Key, len(rows[i].Value))
				}
				bytes += len(rows[i].Value)
				n++
			}
			if pages++; bytes > changelog.PageBytes+weight {
				t.Errorf("%s: a page has %d bytes", what, bytes)
			}
			if !changelog.Full(rows, limit) {
				break
			}
			last = &rows[len(rows)-1]
		}
		if n != small+large || pages != 4 {
			t.Errorf("%s: %d rows in %d pages", what, n, pages)
		}
	}
	states := func(t *testing.T, l changelog.Log, what string) {
		head, err := l.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		check(t, what, func(last *changelog.Row, limit int) ([]changelog.Row, error) {
			from := first
			if last != nil {
				from = last.Key + "\x00"
			}
			return l.State(t.Context(), from, end, head.Revision, limit)
		})
	}
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		for i := range small + large {
			l.put(key(i), 0, value(i))
		}
		states(t, l, "State")
		check(t, "Rows", func(last *changelog.Row, limit int) ([]changelog.Row, error) {
			if last == nil {
				return l.Rows(t.Context(), 0, limit)
			}
			return l.Rows(t.Context(), last.Revision, limit)
		})
	})
	t.Run("raw", func(t *testing.T) {
		forEach(t, func(t *testing.T, db database) {
			l := db.openRaw(t)
			for i := range small + large {
				l.write(put(key(i), value(i)))
			}
			states(t, l, "State")
		})
	})
}

func TestSteps(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		history(l)
		row := func(revision int64, key, value string, created int64, deleted bool) changelog.Row {
			return changelog.Row{Revision: revision, Key: "/registry/" + key, CreateRevision: created, Deleted: deleted, Value: []byte(value)}
		}
		a1, b2, a3 := row(1, "a", "a1", 1, false), row(2, "b", "b2", 2, false), row(3, "a", "a3", 1, false)
		all := []changelog.Step{
			{Row: a1},
			{Row: b2},
			{Row: a3, Prev: &a1},
			{Row: row(4, "b", "b4", 2, true), Prev: &b2},
			{Row: row(5, "c", "c5", 5, false)},
			{Row: row(6, "b", "b6", 6, false)},
			{Row: row(7, "a", "a7", 1, true), Prev: &a3},
		}
		for after := range all {
			diff(t, "steps", all[after:], forgetSteps(l.steps(first, end, int64(after), 99)))
		}
		diff(t, "steps through 3", all[1:3], forgetSteps(l.steps(first, end, 1, 3)))
		diff(t, "steps of b", []changelog.Step{all[1], all[3], all[5]}, forgetSteps(l.steps("/registry/b", "/registry/c", 0, 7)))
		steps, err := l.Steps(context.Background(), first, end, 2, 7, 2)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "two steps", all[2:4], forgetSteps(steps))
	})
}

func forgetSteps(steps []changelog.Step) []changelog.Step {
	var out []changelog.Step
	for _, s := range steps {
		s.At = 0
		if s.Prev != nil {
			p := *s.Prev
			p.At = 0
			s.Prev = &p
		}
		out = append(out, s)
	}
	return out
}

func TestTime(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		ctx := context.Background()
		if found, at, err := l.Time(ctx, 1); found != 0 || at != 0 || err != nil {
			t.Errorf("time in an empty log: %d, %d, %v", found, at, err)
		}
		a := l.append(changelog.Change{Key: "/registry/a", Value: []byte("1")})
		l.put("/registry/a", 1, "2")
		l.put("/registry/a", 2, "3")
		l.compact(2, 10)
		if found, at, err := l.Time(ctx, 1); found != 2 || at < a.At || err != nil {
			t.Errorf("time at 1: %d, %d, %v", found, at, err)
		}
		if found, _, err := l.Time(ctx, 4); found != 0 || err != nil {
			t.Errorf("time after the end: %d, %v", found, err)
		}
	})
}

func TestRaise(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		ctx := context.Background()
		history(l)
		for _, revision := range []int64{3, 7} {
			if err := l.Raise(ctx, revision); err != nil {
				t.Fatal(err)
			}
			diff(t, "head after a raise that does nothing", changelog.Head{Revision: 7}, l.head())
		}
		if err := l.Raise(ctx, 1000); err != nil {
			t.Fatal(err)
		}
		diff(t, "head after raise", changelog.Head{Revision: 1000, Floor: 1000}, l.head())
		if _, err := l.State(ctx, first, end, 999, 10); !errors.Is(err, changelog.ErrCompacted) {
			t.Errorf("state below the floor: %v", err)
		}
		if rows := l.state(first, end, 1000); len(rows) != 2 {
			t.Errorf("state at the floor: %+v", rows)
		}
		if got := l.put("/registry/c", 5, "c1001"); got != 1001 {
			t.Errorf("next revision is %d", got)
		}
		deleted := l.compact(1000, 3)
		if rows := l.rows(); deleted != 5 || len(rows) != 3 { // b6, c5, c1001; and a7, the last of its key, went too
			t.Errorf("compaction deleted %d, left %+v", deleted, forget(rows))
		}
		diff(t, "head after compaction", changelog.Head{Revision: 1001, Floor: 1000}, l.head())
	})
}
