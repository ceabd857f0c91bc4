package logtest

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// added returns the bytes of keys and values in past, row by row.
func (l log) added() (bytes int64) {
	l.t.Helper()
	err := l.Freeze(context.Background(), func(z changelog.Frozen) error {
		return z.Old(context.Background(), func(r *changelog.OldRow) error {
			bytes += int64(len(r.Key) + len(r.Value))
			return nil
		})
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return bytes
}

// noted returns the same as the log has noted it; -1 if it has not.
func (l log) noted() int64 {
	l.t.Helper()
	s, err := l.Size(context.Background())
	if err != nil {
		l.t.Fatal(err)
	}
	return s.PastData
}

// wantNoted compares the bytes that are noted with those that are there.
func (l log) wantNoted() {
	l.t.Helper()
	if noted, added := l.noted(), l.added(); noted != added {
		l.t.Errorf("%d bytes of the past are noted, and %d are there", noted, added)
	}
}

// bound makes one call of Bound.
func (l log) bound(bytes int64, limit int) changelog.Compacted {
	l.t.Helper()
	c, err := l.Bound(context.Background(), bytes, limit)
	if err != nil || c.Busy || c.Past != l.added() {
		l.t.Fatalf("%+v, %v; %d bytes are there", c, err, l.added())
	}
	return c
}

var daysAndSecrets = changelog.NewRetention(
	changelog.Rule{Resource: "*", For: 24 * time.Hour}, changelog.Rule{Resource: "secrets", For: 48 * time.Hour})

// fillPast makes old versions of one resource that go before those of another one.
func (l log) fillPast() {
	l.t.Helper()
	l.put(configs+"a/m", 0, "m1"+strings.Repeat("x", 100))
	l.put(secrets+"a/s", 0, "s2")
	l.put(configs+"a/m", 1, "m3ä")
	l.put(secrets+"a/s", 2, "s4")
	l.put(configs+"a/m", 3, "m5")
	l.delete(secrets+"a/s", 4, "s6")
	l.put("/registry/core/nodes/n", 0, "")
	l.compactKeeping(daysAndSecrets)
}

// TestBoundPast: what goes first goes first, what is lost is noted, and the number of bytes stays exact.
func TestBoundPast(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		l.fillPast()
		if noted := l.noted(); noted != -1 {
			t.Errorf("%d bytes, which nobody has added up", noted)
		}
		all := l.bound(math.MaxInt64, 10)
		if all.Deleted != 0 || all.Past == 0 {
			t.Errorf("without a bound: %+v", all)
		}
		l.wantNoted()
		first := "m1" + strings.Repeat("x", 100) + " "
		l.wantPast(configs, "", first, first, "m3ä ", "m3ä ", "m5 ")
		l.wantPast(secrets, "", "", "s2 ", "s2 ", "s4 ", "s4 ", "")

		if c := l.bound(all.Past, 10); c.Deleted != 0 {
			t.Errorf("within the bound: %+v", c)
		}
		if c := l.bound(all.Past-1, 10); c.Deleted != 1 {
			t.Errorf("a byte beyond the bound: %+v", c)
		}
		l.wantNoted()
		l.wantPast(configs, "?", "?", "?", "m3ä ", "m3ä ", "m5 ")
		l.wantPast(secrets, "", "", "s2 ", "s2 ", "s4 ", "s4 ", "")
		if from, err := l.KnownFrom(t.Context(), configs, configs+"\xff"); err != nil || from != 3 {
			t.Errorf("configmaps are known from %d on, %v", from, err)
		}
		if from, err := l.KnownFrom(t.Context(), secrets, secrets+"\xff"); err != nil || from != 0 {
			t.Errorf("secrets are known from %d on, %v", from, err)
		}

		// In steps, and in the order in which they expire.
		if c := l.bound(0, 1); c.Deleted != 1 || c.Past == 0 {
			t.Errorf("a step: %+v", c)
		}
		l.wantPast(configs, "?", "?", "?", "?", "?", "m5 ")
		l.wantPast(secrets, "", "", "s2 ", "s2 ", "s4 ", "s4 ", "")
		if c := l.bound(0, 10); c.Deleted != 3 || c.Past != 0 {
			t.Errorf("to nothing: %+v", c)
		}
		l.wantNoted()
		l.wantPast(secrets, "?", "?", "?", "?", "?", "?", "")
		if c := l.bound(0, 10); c.Deleted != 0 || c.Past != 0 {
			t.Errorf("of nothing: %+v", c)
		}
	})
}

// TestBoundPastHoles: an old version goes with the younger one that expires before it.
func TestBoundPastHoles(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		retention := func(d time.Duration) *changelog.Retention {
			return changelog.NewRetention(changelog.Rule{Resource: "*", For: d})
		}
		compact := func(through int64, d time.Duration) {
			t.Helper()
			if _, err := l.Compact(t.Context(), through, 100, retention(d)); err != nil {
				t.Fatal(err)
			}
		}
		l.put(configs+"a/m", 0, "m1")
		l.put(configs+"a/m", 1, "m2")
		l.put(configs+"a/m", 2, "m3")
		l.put(configs+"a/m", 3, "m4")
		l.bound(0, 10)
		compact(2, 9*time.Hour)
		compact(3, time.Hour)
		if c := l.bound(l.added()-1, 10); c.Deleted != 2 || c.Past != 0 {
			t.Errorf("%+v", c)
		}
		l.wantNoted()
		l.wantPast(configs, "?", "?", "?", "m3 ", "m4 ")
	})
}

// TestPastNoted: whatever changes the past changes the number of its bytes, and who does not know it makes
// it unknown.
func TestPastNoted(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		l.bound(0, 1)
		l.fillPast()
		l.wantNoted()
		if l.trim(daysAndSecrets, time.Now().Add(30*time.Hour).UnixMilli()) == 0 {
			t.Error("nothing has expired")
		}
		l.wantNoted()
		if removed, err := l.Forget(t.Context(), secrets+"a/s"); err != nil || removed == 0 {
			t.Errorf("%d forgotten, %v", removed, err)
		}
		l.wantNoted()
		last := l.put(configs+"a/n", 0, "n1")
		for range 5 {
			last = l.put(configs+"a/n", last, "n")
		}
		l.compactKeeping(daysAndSecrets)
		l.wantNoted()
		few := changelog.NewRetention(changelog.Rule{Resource: "*", For: 24 * time.Hour, Count: 1})
		if c, err := l.Refit(t.Context(), few, 0, 100); err != nil || c.Deleted == 0 {
			t.Errorf("refit: %+v, %v", c, err)
		}
		l.wantNoted()

		// One without rules may be followed by one with rules before anything is trimmed.
		l.put(configs+"a/n", last, "n")
		l.compactKeeping(nil)
		if noted := l.noted(); noted != -1 {
			t.Errorf("%d bytes are noted by one who does not move them", noted)
		}
		l.put(configs+"a/o", 0, "o")
		l.compactKeeping(daysAndSecrets)
		if noted := l.noted(); noted != -1 {
			t.Errorf("%d bytes are noted that nobody has added up", noted)
		}
		l.bound(math.MaxInt64, 1)
		l.wantNoted()
		l.trim(nil, 0)
		if noted := l.noted(); noted != -1 || l.added() != 0 {
			t.Errorf("%d bytes of %d are noted without rules", noted, l.added())
		}
	})
}
