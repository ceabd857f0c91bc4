package sqlstore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	_ "github.com/mattn/go-sqlite3"
	. "github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
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
		b.Run(fmt.Sprint(writers), func(b *testing.B) { benchmarkCommit(b, writers, context.Background) })
	}
}

// BenchmarkCommitOrigin shows what it costs that a row says who has written it.
func BenchmarkCommitOrigin(b *testing.B) {
	author := changelog.Author{User: "system:node:a", Verb: "patch", Subresource: "status", Manager: "kubelet"}
	for _, writers := range []int{1, 64} {
		b.Run(fmt.Sprint("without/", writers), func(b *testing.B) { benchmarkCommit(b, writers, context.Background) })
		b.Run(fmt.Sprint("with/", writers), func(b *testing.B) {
			benchmarkCommit(b, writers, func() context.Context {
				return WithOrigin(context.Background(), &changelog.Origin{Author: author, AuditID: uuid.NewString()})
			})
		})
	}
}

func benchmarkCommit(b *testing.B, writers int, newContext func() context.Context) {
	s := openStore(b, openLog(b, durable(b)), Options{})
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ReportAllocs()
	b.ResetTimer()
	for range writers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				key := fmt.Sprintf("%sns/%d", maps, i)
				if _, err := s.Commit(newContext(), Change{Key: key, Value: kilobyte(key)}); err != nil {
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
