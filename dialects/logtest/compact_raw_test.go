package logtest

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestSupersede deletes what the compacted revision itself has superseded, in steps, and keeps its rows.
func TestSupersede(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		l.write(put("a", "1"), put("b", "1"), put("c", "1"), put("d", "1")) // 1
		l.write(put("a", "2"), del("b"), put("c", "2"), put("e", "1"))      // 2
		l.write(put("d", "3"))                                              // 3
		through := changelog.LastID(2)
		if _, err := l.Cut(t.Context(), through); err != nil {
			t.Fatal(err)
		}
		after := changelog.FirstID(2) - 1
		if c, err := l.Compact(t.Context(), after, 100, nil); err != nil || c.Swept != after {
			t.Fatalf("compaction below: %+v, %v", c, err)
		}
		for _, want := range []changelog.Compacted{
			{Floor: through, Swept: changelog.FirstID(2) + 1, Deleted: 2},
			{Floor: through, Swept: changelog.FirstID(2) + 3, Deleted: 1},
			{Floor: through, Swept: through}, // up to the floor, though more is asked for
			{Floor: through, Swept: through},
		} {
			c, err := l.Supersede(t.Context(), after, changelog.LastID(3), 2)
			if err != nil {
				t.Fatal(err)
			}
			diff(t, "step", want, c)
			after = c.Swept
		}
		var left []string
		for _, r := range l.rows() {
			revision, _ := changelog.Split(r.Revision)
			left = append(left, fmt.Sprintf("%s@%d", r.Key, revision))
		}
		diff(t, "rows", []string{"d@1", "a@2", "b@2", "c@2", "e@2", "d@3"}, left)
		if state := l.state("", changelog.End, through); len(state) != 4 {
			t.Errorf("state at the floor: %+v", state)
		}
	})
}

// TestSupersedeBusy holds the compactors' lock by hand.
func TestSupersedeBusy(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		l.write(put("a", "1"))
		l.write(put("a", "2"))
		if _, err := l.Cut(t.Context(), changelog.LastID(2)); err != nil {
			t.Fatal(err)
		}
		tx := db.begin(t)
		if _, err := tx.Exec(`SELECT value FROM meta WHERE name = 'swept' FOR UPDATE`); err != nil {
			t.Fatal(err)
		}
		after := changelog.FirstID(2) - 1
		c, err := l.Supersede(t.Context(), after, changelog.LastID(2), 10)
		if err != nil || !c.Busy || c.Swept != after || c.Deleted != 0 {
			t.Errorf("while another compacts: %+v, %v", c, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if c, err := l.Supersede(t.Context(), after, changelog.LastID(2), 10); err != nil || c.Busy || c.Deleted != 1 {
			t.Errorf("after it: %+v, %v", c, err)
		}
	})
}

// TestDefragment deletes almost everything and wants its space back.
func TestDefragment(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		l := db.openRaw(t)
		value := make([]byte, 100<<10)
		for i := range value {
			value[i] = byte(rand.Uint32()) // which no database makes smaller
		}
		var deletes []op
		for i := range 100 {
			key := fmt.Sprint("key", i)
			l.write(put(key, string(value)))
			deletes = append(deletes, del(key))
		}
		l.write(deletes...)
		l.write(put("kept", "1"))
		if _, err := l.Cut(t.Context(), changelog.LastID(102)); err != nil {
			t.Fatal(err)
		}
		if _, err := l.Compact(t.Context(), changelog.LastID(102), 1000, nil); err != nil {
			t.Fatal(err)
		}
		var size changelog.Size
		var err error
		for range 20 { // Postgres keeps what a transaction that runs may see, and autovacuum's ANALYZE is one
			if err = l.Defragment(t.Context()); err != nil {
				t.Fatal(err)
			}
			if size, err = l.Size(t.Context()); err != nil || size.Bytes <= 1<<20 {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if err != nil || size.Bytes > 1<<20 || size.Rows != 1 {
			t.Errorf("after all was deleted: %+v, %v", size, err)
		}
		if state := l.state("", changelog.End, changelog.LastID(102)); len(state) != 1 || state[0].Key != "kept" {
			t.Errorf("state: %+v", state)
		}
		if r := l.write(put("new", "1")); r != 103 {
			t.Errorf("revision %d", r)
		}
	})
}
