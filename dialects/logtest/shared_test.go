package logtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/sqlstore"
)

// TestFollow: a hint comes from another Log on the same database, and Follow ends with
// its context.
func TestFollow(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) { follow(t, db.open(t), db.open(t)) })
}

// TestFollowWithoutNotifications cuts every connection that wants to listen.
func TestFollowWithoutNotifications(t *testing.T) {
	db := database{"postgres", Postgres(t)}
	p, dsn := through(t, db.dsn)
	p.arm("LISTEN", lose)
	writer := db.open(t)
	db.dsn = dsn
	follow(t, writer, db.open(t))
}

// TestFollowAfterReconnect cuts the listening connection; what is written then is told
// all the same.
func TestFollowAfterReconnect(t *testing.T) {
	db := database{"postgres", Postgres(t)}
	p, dsn := through(t, db.dsn)
	writer := db.open(t)
	db.dsn = dsn
	reader := db.open(t)
	follow(t, writer, reader)
	p.cut()
	follow(t, writer, reader)
}

func follow(t *testing.T, writer, reader log) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	hints, ended := make(chan int64, 1000), make(chan struct{})
	go func() {
		defer close(ended)
		reader.Follow(ctx, func(head int64) { hints <- head })
	}()
	for range 20 {
		written := writer.put("/registry/"+randomName(), 0, "x")
		within(t, "hint", func(ctx context.Context) error { return awaitHint(ctx, reader, hints, written) })
	}
	cancel()
	within(t, "end of Follow", func(ctx context.Context) error {
		select {
		case <-ended:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// awaitHint waits for a hint after which the reader finds revision.
func awaitHint(ctx context.Context, reader log, hints <-chan int64, revision int64) error {
	for {
		select {
		case head := <-hints:
			if head >= revision {
				return nil
			}
			if h, err := reader.Head(ctx); head == 0 && err == nil && h.Revision >= revision {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestConcurrentWriters: whoever has seen a revision has seen all below. A reader that
// follows two writing replicas must read every revision, without a gap, at first sight.
func TestConcurrentWriters(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		const batches = 150
		reader := db.open(t)
		var writers sync.WaitGroup
		for w := range 2 {
			l := db.open(t)
			writers.Go(func() { writeBatches(t, l, w, batches) })
		}
		ctx, cancel := context.WithCancel(context.Background())
		hints := make(chan struct{}, 1)
		var follower sync.WaitGroup
		follower.Go(func() {
			reader.Follow(ctx, func(int64) {
				select {
				case hints <- struct{}{}:
				default:
				}
			})
		})
		seen := int64(0)
		within(t, "all rows", func(ctx context.Context) error {
			for seen < 2*batches*3 {
				rows, err := reader.Rows(ctx, seen, 100)
				if err != nil {
					return err
				}
				for _, r := range rows {
					if seen++; r.Revision != seen {
						return fmt.Errorf("revision %d appeared where %d belongs", r.Revision, seen)
					}
				}
				if len(rows) > 0 {
					continue
				}
				select {
				case <-hints:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		writers.Wait()
		cancel()
		follower.Wait()
	})
}

func writeBatches(t *testing.T, l log, writer, batches int) {
	last := make([]int64, 3)
	for range batches {
		var batch []sqlstore.Change
		for i := range last {
			batch = append(batch, sqlstore.Change{Key: fmt.Sprintf("/registry/w%d/%d", writer, i), Expect: last[i], Value: []byte("x")})
		}
		a, err := l.Append(context.Background(), batch)
		if err != nil {
			t.Error(err)
			return
		}
		for i, r := range a.Results {
			if last[i] = r.Revision; r.Revision == 0 {
				t.Errorf("writer %d: %+v", writer, r)
				return
			}
		}
	}
}

// TestSameKey lets two replicas fight for one key: each expectation is won once.
func TestSameKey(t *testing.T) {
	forEachShared(t, func(t *testing.T, db database) {
		const rounds = 60
		logs := []log{db.open(t), db.open(t)}
		start := logs[0].put("/registry/key", 0, "0")
		var wg sync.WaitGroup
		won := make([]int, len(logs))
		for w, l := range logs {
			wg.Go(func() {
				for expect := start; won[w] < rounds; {
					a, err := l.Append(context.Background(), []sqlstore.Change{{Key: "/registry/key", Expect: expect, Value: []byte("x")}})
					if err != nil {
						t.Error(err)
						return
					}
					if r := a.Results[0]; r.Revision != 0 {
						expect = r.Revision
						won[w]++
					} else {
						expect = r.Found
					}
				}
			})
		}
		wg.Wait()
		if head := logs[0].head().Revision; head != 2*rounds+1 {
			t.Errorf("head %d after %v wins", head, won)
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
						_, err = l.Compact(context.Background(), h.Revision-20, 15)
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
		c, err := l.Compact(context.Background(), 4, 10)
		if err != nil || !c.Busy || c.Swept != 0 || c.Deleted != 0 {
			t.Errorf("compact while another does: %+v, %v", c, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if c, err = l.Compact(context.Background(), 4, 10); err != nil || c.Busy || c.Swept != 4 {
			t.Errorf("compact after it: %+v, %v", c, err)
		}
	})
}

// TestPoolerModes: what is used behind a transaction pooler works as well.
func TestPoolerModes(t *testing.T) {
	for _, mode := range []string{"simple_protocol", "exec", "describe_exec", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			db := database{"postgres", Postgres(t)}
			sep := "?"
			if strings.Contains(db.dsn, "?") {
				sep = "&"
			}
			db.dsn += sep + "default_query_exec_mode=" + mode
			l := db.open(t)
			history(l)
			l.append(sqlstore.Change{Key: "/registry/x", Value: []byte{0, 255, '\'', '\\'}}, sqlstore.Change{Key: "/registry/y'\"{},\\", Value: []byte("y")})
			l.compact(5, 10)
			if rows := l.state(first, end, 9); len(rows) != 4 || len(rows[2].Value) != 4 {
				t.Errorf("state %+v", rows)
			}
			l.steps(first, end, 5, 9)
		})
	}
}
