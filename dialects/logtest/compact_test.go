package logtest

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

func TestCompact(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		ctx := context.Background()
		history(l)
		c, err := l.Compact(ctx, 4, 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		// a1 is superseded; b2 and its tombstone are gone.
		diff(t, "compacted", changelog.Compacted{Floor: 4, Swept: 4, Deleted: 3}, c)
		diff(t, "head", changelog.Head{Revision: 7, Floor: 4}, l.head())
		for _, below := range []int64{0, 3} {
			if _, err := l.State(ctx, first, end, below, 10); !errors.Is(err, changelog.ErrCompacted) {
				t.Errorf("state at %d: %v", below, err)
			}
			if _, err := l.Count(ctx, first, end, below); !errors.Is(err, changelog.ErrCompacted) {
				t.Errorf("count at %d: %v", below, err)
			}
			if _, err := l.Steps(ctx, first, end, below, 7, 10); !errors.Is(err, changelog.ErrCompacted) {
				t.Errorf("steps after %d: %v", below, err)
			}
		}
		if rows := l.state(first, end, 4); len(rows) != 1 || string(rows[0].Value) != "a3" {
			t.Errorf("state at the floor: %+v", rows)
		}
		steps := l.steps(first, end, 4, 7)
		if len(steps) != 3 || steps[2].Prev == nil || string(steps[2].Prev.Value) != "a3" || steps[1].Prev != nil {
			t.Errorf("steps from the floor: %+v", steps)
		}
		again, err := l.Compact(ctx, 4, 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "compacted again", changelog.Compacted{Floor: 4, Swept: 4}, again)
	})
}

func TestCompactKeepsTheNewestRow(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		l.put("/registry/a", 0, "1")
		l.delete("/registry/a", 1, "2")
		c, err := l.Compact(context.Background(), 99, 100, nil)
		if err != nil {
			t.Fatal(err)
		}
		diff(t, "compacted", changelog.Compacted{Floor: 1, Swept: 1}, c)
		if rows := l.rows(); len(rows) != 2 {
			t.Errorf("rows %+v", rows)
		}
		if got := l.put("/registry/a", 0, "3"); got != 3 {
			t.Errorf("revision after compaction %d", got)
		}
	})
}

// TestCompactIsBounded counts: one call looks at limit revisions and deletes at most
// one row more for each.
func TestCompactIsBounded(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.open(t)
		last := l.put(keyOf(0), 0, "0")
		for range 100 {
			last = l.put(keyOf(0), last, "1")
		}
		for swept := int64(0); swept < 100; swept += 10 {
			c, err := l.Compact(context.Background(), 100, 10, nil)
			if err != nil {
				t.Fatal(err)
			}
			want := changelog.Compacted{Floor: swept + 10, Swept: swept + 10, Deleted: 10}
			if swept == 0 {
				want.Deleted = 9
			}
			diff(t, "compacted", want, c)
		}
		if rows := l.rows(); len(rows) != 2 {
			t.Errorf("%d rows are left", len(rows))
		}
	})
}

// TestCompactWhileWriting: compaction on two replicas, one of them Busy now and then,
// while both write.
func TestCompactWhileWriting(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		logs := []log{db.open(t), db.open(t)}
		ctx, cancel := context.WithCancel(context.Background())
		var writers, compactors sync.WaitGroup
		for w, l := range logs {
			writers.Go(func() { writeBatches(t, l, w, 100) })
			compactors.Go(func() {
				for ctx.Err() == nil {
					h, err := l.Head(context.Background())
					if err == nil {
						_, err = l.Compact(context.Background(), h.Revision-20, 15, nil)
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		writers.Wait()
		cancel()
		compactors.Wait()
		logs[0].compact(600, 100)
		if rows := logs[0].rows(); len(rows) != 7 { // six keys and the predecessor of the newest row
			t.Errorf("%d rows are left", len(rows))
		}
	})
}

// TestCompactBusy holds the compactors' lock by hand.
func TestCompactBusy(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		l := db.open(t)
		history(l)
		tx := db.begin(t)
		if _, err := tx.Exec(`SELECT value FROM meta WHERE name = 'swept' FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		c, err := l.Compact(context.Background(), 4, 10, nil)
		if err != nil || !c.Busy || c.Swept != 0 || c.Deleted != 0 {
			t.Errorf("compact while another does: %+v, %v", c, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if c, err = l.Compact(context.Background(), 4, 10, nil); err != nil || c.Busy || c.Swept != 4 {
			t.Errorf("compact after it: %+v, %v", c, err)
		}
	})
}
