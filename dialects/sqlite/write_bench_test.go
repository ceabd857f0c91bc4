package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The floor that Append is compared with: the bare driver on one connection, inserting
// rows of the same size into the same schema.
func BenchmarkFloor(b *testing.B) {
	for _, rows := range []int{1, 100} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "floor.db")
			open(b, Options{Path: path}).Close() // for the schema
			db := sql.OpenDB(connector(fileName(path) + "&_journal_mode=WAL&_synchronous=FULL&_txlock=immediate"))
			defer db.Close()
			db.SetMaxOpenConns(1)
			value := bytes.Repeat([]byte{'x'}, 1024)
			id := int64(0)
			for b.Loop() {
				tx, err := db.Begin()
				if err != nil {
					b.Fatal(err)
				}
				insert, err := tx.Prepare(`INSERT INTO log (id, key, create_id, deleted, at, value) VALUES (?, ?, ?, ?, ?, ?)`)
				if err != nil {
					b.Fatal(err)
				}
				for range rows {
					id++
					if _, err := insert.Exec(id, fmt.Sprintf("/registry/core/configmaps/default/k%08d", id), id, 0, id, value); err != nil {
						b.Fatal(err)
					}
				}
				if err := tx.Commit(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	for _, rows := range []int{1, 64, 100} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			l := open(b, Options{Path: filepath.Join(b.TempDir(), "append.db")})
			value := bytes.Repeat([]byte{'x'}, 1024)
			batch := make([]changelog.Change, rows)
			id := 0
			b.ReportAllocs()
			for b.Loop() {
				for i := range batch {
					id++
					batch[i] = changelog.Change{Key: fmt.Sprintf("/registry/core/configmaps/default/k%08d", id), Value: value}
				}
				if _, err := l.Append(context.Background(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
