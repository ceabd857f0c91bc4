package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	_ "github.com/mattn/go-sqlite3"
	. "github.com/plinth-io/plinth/sqlstore"
)

// kilobyte is an object of about 1 KiB.
func kilobyte(key string) []byte {
	return fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q},"data":{"pad":%q}}`,
		key[strings.LastIndexByte(key, '/')+1:], strings.Repeat("x", 900))
}

// durable is a file in the directory that TMPDIR names; put it on a disk to measure one.
func durable(b *testing.B) string {
	return "sqlite://" + filepath.Join(b.TempDir(), "p.db")
}

// BenchmarkFloor is the bare driver on one connection with the log's schema: what the
// store is measured against.
func BenchmarkFloor(b *testing.B) {
	for _, rows := range []int{1, 100} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) { benchmarkFloor(b, rows) })
	}
}

func benchmarkFloor(b *testing.B, rows int) {
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(b.TempDir(), "p.db")+"?_journal_mode=WAL&_synchronous=FULL&_txlock=immediate")
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec(`
		CREATE TABLE log (id INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL, create_id INTEGER NOT NULL,
			deleted INTEGER NOT NULL, at INTEGER NOT NULL, value BLOB NOT NULL);
		CREATE UNIQUE INDEX log_key_id ON log (key, id)`); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare(`INSERT INTO log (key, create_id, deleted, at, value) VALUES (?, ?, 0, ?, ?)`)
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		tx, err := db.Begin()
		if err != nil {
			b.Fatal(err)
		}
		stmt := tx.Stmt(insert)
		for range rows {
			n++
			key := fmt.Sprintf("%sns/%d", maps, n)
			if _, err := stmt.Exec(key, n, n, kilobyte(key)); err != nil {
				b.Fatal(err)
			}
		}
		if err := tx.Commit(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkCommit(b *testing.B) {
	for _, writers := range []int{1, 16, 64, 256} {
		b.Run(fmt.Sprint(writers), func(b *testing.B) { benchmarkCommit(b, writers) })
	}
}

func benchmarkCommit(b *testing.B, writers int) {
	s := openStore(b, openLog(b, durable(b)), Options{})
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				key := fmt.Sprintf("%sns/%d", maps, i)
				if _, err := s.Commit(context.Background(), Change{Key: key, Value: kilobyte(key)}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	v := s.Stats()
	b.ReportMetric(float64(v.Changes)/float64(max(1, v.Batches)), "rows/batch")
}

func BenchmarkGet(b *testing.B) {
	s := newStore(b, Options{})
	keys := fill(b, s, 10000)
	b.ResetTimer()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if s.Get(keys[i%len(keys)]) == nil {
				b.Error("not found")
			}
		}
	})
}

// BenchmarkCurrent takes a snapshot after each change of 10,000 objects.
func BenchmarkCurrent(b *testing.B) {
	s := newStore(b, Options{})
	fill(b, s, 10000)
	b.ReportAllocs()
	for b.Loop() {
		s.Current(maps)
	}
}

// BenchmarkWatchFanout commits one change at a time and takes it to all watchers, of
// the whole resource or of one namespace each.
func BenchmarkWatchFanout(b *testing.B) {
	for _, c := range []struct {
		name   string
		prefix func(i int) string
	}{
		{"all", func(int) string { return maps }},
		{"namespaces", func(i int) string { return fmt.Sprintf("%sns%d/", maps, i) }},
	} {
		for _, watchers := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, watchers), func(b *testing.B) { benchmarkFanout(b, watchers, c.prefix) })
		}
	}
}

func benchmarkFanout(b *testing.B, watchers int, prefix func(int) string) {
	s := newStore(b, Options{})
	var seen atomic.Int64
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for i := range watchers {
		w, err := s.Watch(maps, prefix(i), s.Revision())
		if err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			defer w.Close()
			for {
				events, _, err := w.Poll(context.Background())
				if err != nil {
					b.Error(err)
					return
				}
				seen.Add(int64(len(events)))
				select {
				case <-w.Wait():
				case <-stop:
					return
				}
			}
		})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		create(b, s, fmt.Sprintf("%sns%d/%d", maps, i%watchers, i))
	}
	want := int64(b.N)
	if prefix(0) == maps {
		want *= int64(watchers)
	}
	for seen.Load() < want {
		runtime.Gosched() // the last events are on their way
	}
	b.StopTimer()
	b.ReportMetric(float64(want)/b.Elapsed().Seconds(), "events/s")
	close(stop)
	wg.Wait()
}

func fill(b *testing.B, s *Store, n int) (keys []string) {
	keys = make([]string, n)
	var wg sync.WaitGroup
	for w := range 50 {
		wg.Go(func() {
			for i := w; i < n; i += 50 {
				keys[i] = fmt.Sprintf("%sns/%d", maps, i)
				if _, err := s.Commit(context.Background(), Change{Key: keys[i], Value: kilobyte(keys[i])}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return keys
}
