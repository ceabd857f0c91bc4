package logtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestExpect has each statement meet a log that is the one expected, and others.
func TestExpect(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		l := db.open(t)
		other := db.open(t) // of which nothing is expected
		a := l.put("/registry/a", 0, "1")
		b := l.append(changelog.Change{Key: "/registry/b", Value: []byte("1")})
		row, at := b.Results[0].Revision, b.At
		for _, test := range []struct {
			name string
			w    *changelog.Witness
			good bool
		}{
			{"nothing", nil, true},
			{"no row", &changelog.Witness{Head: row}, true},
			{"the newest row", &changelog.Witness{Head: a, Revision: row, At: at}, true},
			{"another row", &changelog.Witness{Head: a, Revision: row, At: at + 1}, false},
			{"a row that is not there", &changelog.Witness{Head: a, Revision: row + 1000, At: at}, false},
			{"a head beyond", &changelog.Witness{Head: row + 1000}, false},
			{"a head beyond, with a row", &changelog.Witness{Head: row + 1000, Revision: row, At: at}, false},
		} {
			l.Expect(test.w)
			before := other.head()
			for name, err := range expecting(l, before.Revision) {
				if errors.Is(err, changelog.ErrSetBack) == test.good || test.good && err != nil {
					t.Errorf("%s, %s: %v", test.name, name, err)
				}
				if !test.good && !errors.Is(err, changelog.ErrUnavailable) {
					t.Errorf("%s, %s does not count as unavailable: %v", test.name, name, err)
				}
			}
			wrote := other.head().Revision - before.Revision
			if want := map[bool]int64{true: 3}[test.good]; wrote != want {
				t.Errorf("%s: %d rows were written, want %d", test.name, wrote, want)
			}
		}
		l.Expect(nil)
	})
}

// expecting runs all statements that check what is expected.
func expecting(l log, head int64) map[string]error {
	ctx := context.Background()
	key := func(name string) string { return "/registry/" + name + "/" + rand.Text() }
	errs := map[string]error{}
	_, errs["append one"] = l.Append(ctx, []changelog.Change{{Key: key("one"), Value: []byte("1")}})
	_, errs["append"] = l.Append(ctx, []changelog.Change{{Key: key("two"), Value: []byte("1")}, {Key: key("three"), Value: []byte("1")}})
	_, errs["probe"] = l.Append(ctx, nil)
	_, errs["head"] = l.Head(ctx)
	_, errs["rows"] = l.Rows(ctx, 0, 10)
	_, errs["no rows"] = l.Rows(ctx, head+1000, 10)
	_, errs["state"] = l.State(ctx, first, end, head, 10)
	_, errs["count"] = l.Count(ctx, first, end, head)
	_, errs["steps"] = l.Steps(ctx, first, end, 0, head, 10)
	return errs
}

// TestExpectCompacted has the expected row compacted, which is not a set-back, but rows do not tell then
// what happened to the state that had it.
func TestExpectCompacted(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		l := db.open(t)
		a := l.append(changelog.Change{Key: "/registry/a", Value: []byte("1")})
		row := a.Results[0].Revision
		b := l.put("/registry/a", row, "2")
		l.put("/registry/b", 0, "1")
		if _, err := l.Compact(t.Context(), b, 100, nil); err != nil {
			t.Fatal(err)
		}
		l.Expect(&changelog.Witness{Head: row, Revision: row, At: a.At})
		for name, err := range expecting(l, l.head().Revision) {
			switch name {
			case "rows", "no rows", "steps": // steps after 0, which is below the floor
				if !errors.Is(err, changelog.ErrCompacted) {
					t.Errorf("%s: %v", name, err)
				}
			default:
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		l.Expect(nil)
	})
}

// TestExpectRaw is TestExpect for transactions, and for what else a log of raw keys has.
func TestExpectRaw(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		ctx := t.Context()
		l, other := db.openRaw(t), db.openRaw(t)
		id := changelog.FirstID(2)
		put := func(l changelog.Log, id int64) (at int64, err error) {
			err = l.Transact(ctx, changelog.Ask{After: id, Limit: 10}, func(f *changelog.Found) (changelog.Decision, error) {
				at = f.At
				return changelog.Decision{Rows: []changelog.Row{{Revision: id, Key: fmt.Sprint("k", id), CreateRevision: id, At: f.At, Value: []byte("v"), Version: 1}}}, nil
			})
			return at, err
		}
		at, err := put(l, id)
		if err != nil {
			t.Fatal(err)
		}
		l.Expect(&changelog.Witness{Head: id, Revision: id, At: at})
		if _, err := put(l, changelog.FirstID(3)); err != nil {
			t.Errorf("as expected: %v", err)
		}
		if v, err := l.Values(ctx, []int64{id}); err != nil || string(v[id]) != "v" {
			t.Errorf("values as expected: %q, %v", v[id], err)
		}
		l.Expect(&changelog.Witness{Head: id, Revision: id, At: at - 1})
		if _, err := put(l, changelog.FirstID(4)); !errors.Is(err, changelog.ErrSetBack) {
			t.Errorf("another row: %v", err)
		}
		if _, err := l.Values(ctx, []int64{id}); !errors.Is(err, changelog.ErrSetBack) {
			t.Errorf("values, another row: %v", err)
		}
		if _, err := l.Rows(ctx, 0, 10); !errors.Is(err, changelog.ErrSetBack) {
			t.Errorf("rows, another row: %v", err)
		}
		if _, err := l.Keys(ctx, "", changelog.End, changelog.LastID(3), 10); !errors.Is(err, changelog.ErrSetBack) {
			t.Errorf("keys, another row: %v", err)
		}
		if h, err := other.Head(ctx); err != nil || h.Revision != changelog.FirstID(3) {
			t.Errorf("the log ends at %+v, %v", h, err)
		}
		l.Expect(nil)
	})
}
