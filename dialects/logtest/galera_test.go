package logtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestHAGalera opens a log at each node of a cluster.
func TestHAGalera(t *testing.T) {
	g := StartGalera(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, []log)
	}{{"writers", testGaleraWriters}, {"reads", testGaleraReads}, {"locks", testGaleraLocks}} {
		t.Run(c.name, func(t *testing.T) {
			g.Fresh(t)
			var logs []log
			for n := range g.Nodes {
				logs = append(logs, database{"mariadb", g.DSN(n)}.open(t))
			}
			c.test(t, logs)
		})
	}
	t.Run("open", func(t *testing.T) { testGaleraOpen(t, g) })
}

// testGaleraWriters has writers at all nodes change the same keys, while others follow the log, sweep it and
// move its floor. Each change replaces the one that it has expected, and whoever follows sees every revision
// once and in order.
func testGaleraWriters(t *testing.T, logs []log) {
	const keys, each = 3, 25
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var acknowledged [keys]atomic.Int64
	var writers, others sync.WaitGroup
	for n, l := range logs {
		writers.Go(func() {
			for i := range each {
				k := rand.IntN(keys)
				if add(t, l, keyOf(k), n) {
					acknowledged[k].Add(1)
				}
				add(t, l, fmt.Sprintf("%s-%d", keyOf(k), n), n)
				if i%20 == 0 {
					l.setMark(fmt.Sprint(i))
				}
			}
		})
		others.Go(func() { followAll(ctx, t, l) })
		others.Go(func() {
			for ctx.Err() == nil {
				if _, err := l.Compact(ctx, l.head().Revision-50, 20, nil); err != nil && ctx.Err() == nil {
					t.Errorf("compact: %v", err)
				}
				time.Sleep(500 * time.Millisecond)
			}
		})
	}
	begun := time.Now()
	writers.Wait()
	took := time.Since(begun)
	stop()
	others.Wait()
	t.Logf("%d changes in %v", logs[0].head().Revision, took)
	for _, l := range logs {
		l.check()
		for _, r := range l.state(first, end, l.head().Revision) {
			for k := range keys {
				if want := fmt.Sprint(acknowledged[k].Load()); r.Key == keyOf(k) && !strings.HasPrefix(string(r.Value), want+" ") {
					t.Errorf("%s is %s, and %s changes were acknowledged", r.Key, r.Value, want)
				}
			}
		}
	}
	diff(t, "the logs of two nodes", logs[0].rows(), logs[1].rows())
	diff(t, "the logs of two nodes", logs[0].rows(), logs[2].rows())
}

// add counts up what a key holds, signs it, and tells whether it was acknowledged.
func add(t *testing.T, l log, key string, writer int) bool {
	for {
		head := l.head().Revision
		rows, err := l.State(t.Context(), key, key+"\x00", head, 1)
		if errors.Is(err, changelog.ErrCompacted) {
			continue
		}
		if err != nil {
			t.Errorf("read: %v", err)
			return false
		}
		c, n := changelog.Change{Key: key}, 0
		if len(rows) > 0 {
			c.Expect = rows[0].Revision
			fmt.Sscan(string(rows[0].Value), &n)
		}
		c.Value = fmt.Appendf(nil, "%d by %d", n+1, writer)
		a, err := l.Append(t.Context(), []changelog.Change{c})
		if errors.Is(err, changelog.ErrUnavailable) {
			continue // nothing was written
		}
		if err != nil {
			t.Errorf("append: %v", err)
			return false
		}
		if r := a.Results[0]; r.Revision > 0 {
			return true
		} else if r.Found <= c.Expect {
			t.Errorf("%s: refused for revision %d, which was expected to be %d", key, r.Found, c.Expect)
			return false
		}
	}
}

// setMark writes a mark, over the others'.
func (l log) setMark(value string) {
	if err := l.SetMarks(context.Background(), map[string]string{"test": value}); err != nil {
		l.t.Errorf("set mark: %v", err)
	}
}

// followAll reads rows as the tail does: none below the last one comes later.
func followAll(ctx context.Context, t *testing.T, l log) {
	last := int64(0)
	for ctx.Err() == nil {
		rows, err := l.Rows(ctx, last, 100)
		if err != nil && ctx.Err() == nil {
			t.Errorf("follow: %v", err)
			return
		}
		for _, r := range rows {
			if r.Revision != last+1 && last > 0 {
				t.Errorf("revision %d after %d", r.Revision, last)
			}
			last = r.Revision
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// testGaleraReads reads at one node what was just acknowledged at another.
func testGaleraReads(t *testing.T, logs []log) {
	for i := range 200 {
		revision := logs[i%3].put(keyOf(i), 0, "x")
		if head := logs[(i+1)%3].head().Revision; head < revision {
			t.Fatalf("head %d at another node after %d was acknowledged", head, revision)
		}
		rows, err := logs[(i+2)%3].Rows(t.Context(), revision-1, 10)
		if err != nil || len(rows) == 0 {
			t.Fatalf("%d rows after %d: %v", len(rows), revision-1, err)
		}
	}
}

// testGaleraLocks has one node raise the floor while the others write: no row comes at or below a floor when
// that is there.
func testGaleraLocks(t *testing.T, logs []log) {
	logs[0].put(keyOf(0), 0, "x")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var writers sync.WaitGroup
	for n, l := range logs[1:] {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := l.Append(t.Context(), []changelog.Change{{Key: fmt.Sprintf("%s-%d", keyOf(i), n), Value: []byte("x")}})
				// The floor may have been raised above a row of which nobody knows whether it was written.
				if err != nil && !errors.Is(err, changelog.ErrUnknown) && !errors.Is(err, changelog.ErrUnavailable) {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	below := map[int64]int{} // rows at or below a floor
	for range 40 {
		to := logs[0].head().Revision + 5
		if err := logs[0].Raise(t.Context(), to); err != nil {
			t.Error(err)
			break
		}
		if logs[0].head().Floor == to {
			below[to] = rowsUpTo(logs[0], to)
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	writers.Wait()
	for floor, n := range below {
		if now := rowsUpTo(logs[0], floor); now != n {
			t.Errorf("%d rows at or below the floor %d, and %d when it was raised", now, floor, n)
		}
	}
	t.Logf("%d rows, %d floors", len(logs[0].rows()), len(below))
}

func rowsUpTo(l log, revision int64) (n int) {
	for _, r := range l.rows() {
		if r.Revision <= revision {
			n++
		}
	}
	return n
}

// testGaleraOpen opens a database that has no tables yet at all nodes at once.
func testGaleraOpen(t *testing.T, g *Galera) {
	for range 3 {
		g.Fresh(t)
		logs := make([]log, len(g.Nodes))
		var opening sync.WaitGroup
		for n := range g.Nodes {
			opening.Go(func() { logs[n] = log{openDSN(t, g.DSN(n)), t} })
		}
		opening.Wait()
		for _, l := range logs {
			l.put(keyOf(0)+l.ClusterID()+fmt.Sprint(l.head().Revision), 0, "x")
			if l.ClusterID() != logs[0].ClusterID() {
				t.Errorf("cluster %s and cluster %s", l.ClusterID(), logs[0].ClusterID())
			}
		}
		for _, l := range logs {
			l.Close()
		}
	}
}
