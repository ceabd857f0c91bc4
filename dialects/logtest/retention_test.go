package logtest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	configs = "/registry/core/configmaps/"
	secrets = "/registry/core/secrets/"
	apps    = "/registry/apps/deployments/"
)

var forever = changelog.NewRetention(changelog.Rule{Resource: "*", For: changelog.KeepForever})

// compactKeeping compacts all but the newest row, in steps.
func (l log) compactKeeping(retention *changelog.Retention) (kept int64) {
	l.t.Helper()
	through := l.head().Revision - 1
	for {
		c, err := l.Compact(context.Background(), through, 3, retention)
		if err != nil {
			l.t.Fatal(err)
		}
		if kept += c.Kept; c.Swept >= through {
			return kept
		}
	}
}

// size returns the rows of log and past.
func (l log) size() (log, past int64) {
	l.t.Helper()
	s, err := l.Size(context.Background())
	if err != nil || (s.PastBytes > 0) != (s.Past > 0) && l.Exclusive() {
		l.t.Fatalf("size %+v, %v", s, err)
	}
	return s.Rows, s.Past
}

// past reads all of [from, to) at revision in pages; known is false if that is not known.
func (l log) past(from, to string, revision int64) (all []changelog.Row, known bool) {
	l.t.Helper()
	const page = 3
	for {
		rows, err := l.Past(context.Background(), from, to, revision, page)
		if errors.Is(err, changelog.ErrCompacted) {
			return nil, false
		}
		if err != nil {
			l.t.Fatal(err)
		}
		all = append(all, l.whole(rows)...)
		if len(rows) < page {
			return all, true
		}
		if from = rows[page-1].Key + "\x00"; to <= from {
			return all, true
		}
	}
}

// whole reads the values of rows, and compares them with their sizes.
func (l log) whole(rows []changelog.HistoryRow) (all []changelog.Row) {
	l.t.Helper()
	if len(rows) == 0 {
		return nil
	}
	ids := []int64{1 << 60} // which is not there
	for _, r := range rows {
		ids = append(ids, r.Revision)
	}
	values, err := l.OldValues(context.Background(), ids)
	if err != nil || len(values) != len(rows) {
		l.t.Fatalf("%d values of %d, %v", len(values), len(rows), err)
	}
	for _, r := range rows {
		if r.Value != nil || int64(len(values[r.Revision])) != r.Size {
			l.t.Errorf("%q of %d bytes, not %d", values[r.Revision], len(values[r.Revision]), r.Size)
		}
		r.Value = values[r.Revision]
		all = append(all, r.Row)
	}
	return all
}

func (l log) pastOf(resource string, revision int64) (values string, known bool) {
	l.t.Helper()
	from, to := changelog.RangeOf(resource)
	rows, known := l.past(from, to, revision)
	for _, r := range rows {
		values += string(r.Value) + " "
	}
	return values, known
}

// wantPast compares what is known of a range at each revision, "?" for what is not.
func (l log) wantPast(resource string, want ...string) {
	l.t.Helper()
	for i, w := range want {
		got, known := l.pastOf(resource, int64(i))
		if !known {
			got = "?"
		}
		if got != w {
			l.t.Errorf("%s at %d: %q, want %q", resource, i, got, w)
		}
	}
}

func (l log) trim(retention *changelog.Retention, now int64) (deleted int64) {
	l.t.Helper()
	for {
		c, err := l.Trim(context.Background(), retention, now, 2)
		if err != nil || c.Busy {
			l.t.Fatal(c, err)
		}
		if deleted += c.Deleted; c.Deleted < 2 {
			return deleted
		}
	}
}

// TestKeep compacts objects of which one kind is kept.
func TestKeep(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		l.put(apps+"a/web", 0, "w1")           // 1
		l.put(secrets+"a/s", 0, "s2")          // 2
		l.put(apps+"a/web", 1, "w3")           // 3
		l.put(secrets+"a/s", 2, "s4")          // 4
		l.delete(apps+"a/web", 3, "gone5")     // 5
		l.put(apps+"b/api", 0, "a6")           // 6
		l.put(apps+"a/web", 0, "w7")           // 7
		l.put("/registry/core/nodes/n", 0, "") // 8
		retention := changelog.NewRetention(changelog.Rule{Resource: "deployments.apps", For: 24 * time.Hour})
		if kept := l.compactKeeping(retention); kept != 3 {
			t.Errorf("%d rows kept", kept)
		}
		if rows, past := l.size(); rows != 4 || past != 3 {
			t.Errorf("%d rows, %d in the past", rows, past)
		}
		l.wantPast(apps, "", "w1 ", "w1 ", "w3 ", "w3 ", "", "a6 ", "w7 a6 ", "w7 a6 ")
		l.wantPast(secrets, "?", "?", "?", "?", "s4 ", "s4 ", "s4 ", "s4 ", "s4 ")
		l.wantPast("/registry/", "?", "?", "?", "?", "w3 s4 ", "s4 ", "a6 s4 ", "w7 a6 s4 ")
		for revision := int64(0); revision < 8; revision++ { // a key is known from its oldest version on
			if _, known := l.past(secrets+"a/s", secrets+"a/s\x00", revision); known != (revision >= 4) {
				t.Errorf("secret at %d: %v", revision, known)
			}
			if _, known := l.past(apps+"a/web", apps+"a/web\x00", revision); !known {
				t.Errorf("deployment at %d is not known", revision)
			}
		}
		if _, known := l.pastOf(apps, 99); !known {
			t.Error("the future")
		}

		if rows, known := l.past(apps+"a/", apps+"b", 6); len(rows) != 0 || !known {
			t.Errorf("a namespace: %v, %v", rows, known)
		}

		// Without rules nothing of the past is known any more.
		if l.put(secrets+"a/t", 0, "t9"); l.compactKeeping(nil) != 0 {
			t.Error("kept without rules")
		}
		l.wantPast(apps, "?", "?", "?", "?", "?", "?", "?")
		if deleted := l.trim(nil, 0); deleted != 3 {
			t.Errorf("%d rows deleted", deleted)
		}
		if _, past := l.size(); past != 0 {
			t.Errorf("%d rows are left", past)
		}
	})
}

// TestKeepCount: of a key the newest versions stay, whether they came at once or one by one.
func TestKeepCount(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		retention := changelog.NewRetention(changelog.Rule{Resource: "configmaps", For: changelog.KeepForever, Count: 2})
		want := []string{"?"}
		last := int64(0)
		put := func() {
			last = l.put(configs+"a/m", last, fmt.Sprint(len(want)))
			want = append(want, "?")
		}
		look := func() {
			t.Helper()
			l.put(secrets+"a/"+fmt.Sprint(len(want)), 0, "")
			want = append(want, "?")
			l.compactKeeping(retention)
			if _, past := l.size(); past != 2 {
				t.Errorf("%d versions are kept", past)
			}
		}
		for range 7 {
			put()
		}
		look() // 8
		want[5], want[6], want[7], want[8] = "5 ", "6 ", "7 ", "7 "
		l.wantPast(configs, want...)
		put() // 9
		look()
		want[5], want[9], want[10] = "?", "9 ", "9 "
		l.wantPast(configs, want...)
		if _, known := l.past(configs+"a/other", configs+"a/other\x00", 4); known {
			t.Error("a key of which nothing is there is known")
		}
		c, err := l.Refit(t.Context(), changelog.NewRetention(changelog.Rule{Resource: "*", For: changelog.KeepForever, Count: 1}), 0, 10)
		if err != nil || c.Deleted != 1 || c.Swept == 0 {
			t.Errorf("refit: %+v, %v", c, err)
		}
		want[6] = "?"
		l.wantPast(configs, want...)
	})
}

// TestKeepExpires: versions go a time after they were superseded.
func TestKeepExpires(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		hours := func(n int) *changelog.Retention {
			return changelog.NewRetention(changelog.Rule{Resource: "*", For: time.Duration(n) * time.Hour}, changelog.Rule{Resource: "secrets"})
		}
		l.put(configs+"a/m", 0, "1")
		l.put(secrets+"a/s", 0, "s")
		l.put(configs+"a/m", 1, "3")
		l.delete(configs+"a/m", 3, "4")
		l.put(secrets+"a/s", 2, "s")
		l.put(secrets+"a/s", 5, "s")
		if kept := l.compactKeeping(hours(2)); kept != 3 {
			t.Errorf("%d rows kept", kept)
		}
		in := func(n int) int64 { return time.Now().Add(time.Duration(n) * time.Hour).UnixMilli() }
		if deleted := l.trim(hours(2), in(1)); deleted != 0 {
			t.Errorf("%d deleted too early", deleted)
		}
		l.wantPast(configs, "", "1 ", "1 ", "3 ", "", "")
		c, err := l.Refit(t.Context(), hours(4), 0, 2)
		if err != nil || c.Swept != 3 || c.Deleted != 0 {
			t.Errorf("refit: %+v, %v", c, err)
		}
		if deleted := l.trim(hours(4), in(3)); deleted != 3 { // no version stays without those that came later
			t.Errorf("%d deleted", deleted)
		}
		l.wantPast(configs, "?", "?", "?", "?", "", "")
		if c, err := l.Refit(t.Context(), hours(4), 3, 2); err != nil || c.Swept != 3 {
			t.Errorf("refit of nothing: %+v, %v", c, err)
		}
	})
}

// TestForget removes old versions that were compacted, and others that were not.
func TestForget(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		forgotten := func(key string, want int64) {
			t.Helper()
			removed, err := l.Forget(t.Context(), key)
			if err != nil || removed != want {
				t.Errorf("%d removed, %v; want %d", removed, err, want)
			}
		}
		l.put(secrets+"a/s", 0, "1")
		l.put(secrets+"a/t", 0, "2")
		l.put(secrets+"a/s", 1, "3")
		l.put(secrets+"a/t", 2, "4")
		l.compactKeeping(forever)
		l.put(secrets+"a/s", 3, "5")
		l.put(secrets+"a/s", 5, "6")
		forgotten(secrets+"a/none", 0)
		diff(t, "nothing forgotten", changelog.Head{Revision: 6, Floor: 3}, l.head())
		forgotten(secrets+"a/s", 3)
		diff(t, "forgotten", changelog.Head{Revision: 6, Floor: 6}, l.head())
		l.wantPast(secrets, "?", "?", "?", "?", "?", "?", "6 4 ")
		if rows, known := l.past(secrets+"a/t", secrets+"a/t\x00", 3); !known || len(rows) != 1 || string(rows[0].Value) != "2" {
			t.Errorf("another one: %v, %v", rows, known)
		}
		forgotten(secrets+"a/s", 0)

		// One that is deleted goes altogether, though its tombstone is the newest row.
		l.delete(secrets+"a/s", 6, "7")
		forgotten(secrets+"a/s", 2)
		if rows := l.rows(); len(rows) != 2 || rows[1].Revision != 4 {
			t.Errorf("rows %+v", rows)
		}
		diff(t, "forgotten", changelog.Head{Revision: 7, Floor: 7}, l.head())
		if next := l.put(secrets+"a/s", 0, "8"); next != 8 {
			t.Errorf("next revision %d", next)
		}

		// Many versions are more than one step.
		last := l.put(configs+"a/m", 0, "")
		for range 1100 {
			last = l.put(configs+"a/m", last, "")
		}
		for through := l.head().Revision - 1; ; {
			c, err := l.Compact(t.Context(), through, 500, forever)
			if err != nil {
				t.Fatal(err)
			}
			if c.Swept == through {
				break
			}
		}
		forgotten(configs+"a/m", 1100)
		if log, past := l.size(); log != 3 || past != 1 {
			t.Errorf("%d rows, %d of the past", log, past)
		}
	})
}

// TestForgetWithoutRules: old versions within the history can be forgotten, too. The newest row of the
// log is the tombstone.
func TestForgetWithoutRules(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		history(l)
		removed, err := l.Forget(t.Context(), "/registry/a")
		if err != nil || removed != 3 {
			t.Errorf("%d removed, %v", removed, err)
		}
		if rows := l.rows(); len(rows) != 4 {
			t.Errorf("rows %+v", rows)
		}
		diff(t, "head", changelog.Head{Revision: 7, Floor: 7}, l.head())
		if _, err := l.State(t.Context(), first, end, 6, 1); !errors.Is(err, changelog.ErrCompacted) {
			t.Errorf("state before: %v", err)
		}
		if next := l.put("/registry/a", 0, "a8"); next != 8 {
			t.Errorf("next revision %d", next)
		}
		if rows := l.state(first, end, 8); len(rows) != 3 {
			t.Errorf("rows %+v", rows)
		}
	})
}
