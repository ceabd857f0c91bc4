package logtest

import (
	"bytes"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// TestBloat churns a few objects twice, 20 MB each time, compacts as it goes, and
// measures what the database takes. SQLite must give its space back; a server must at
// least use it again.
func TestBloat(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return
		}
		l, files := db.open(t), db.sql(t)
		churn(t, l, 0)
		if db.name == "sqlite" {
			if size := db.size(t, files); size > 1<<20 {
				t.Errorf("the files take %d KiB for 100 KiB of objects", size>>10)
			}
		}
		if db.name == "postgres" { // what autovacuum does when it comes by
			if _, err := files.Exec(`VACUUM log`); err != nil {
				t.Fatal(err)
			}
		}
		before := db.size(t, files)
		churn(t, l, l.head().Revision)
		after := db.size(t, files)
		t.Logf("%d KiB after the first churn, %d after the second", before>>10, after>>10)
		// Autovacuum may have given back what it then takes again.
		if after > max(45<<20, before*3/2+8<<20) {
			t.Errorf("grew from %d to %d KiB", before>>10, after>>10)
		}
	})
}

func churn(t *testing.T, l log, head int64) {
	t.Helper()
	const keys, rounds = 100, 200
	value := bytes.Repeat([]byte("0123456789abcdef"), 64)
	batch := make([]changelog.Change, keys)
	for i := range batch {
		batch[i] = changelog.Change{Key: keyOf(i), Value: value}
		if head > 0 {
			batch[i].Expect = head - keys + int64(i) + 1
		}
	}
	for round := range rounds {
		for i, r := range l.append(batch...).Results {
			batch[i].Expect = r.Revision
		}
		if round%20 == 19 {
			l.compact(batch[keys-1].Expect, 1000)
			if err := l.Reclaim(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (db database) size(t *testing.T, raw *sql.DB) (size int64) {
	t.Helper()
	var err error
	switch db.name {
	case "sqlite":
		var files []string
		files, err = filepath.Glob(strings.TrimPrefix(db.dsn, "sqlite://") + "*")
		for _, file := range files {
			if info, err := os.Stat(file); err == nil {
				size += info.Size()
			}
		}
	case "postgres":
		err = raw.QueryRow(`SELECT pg_total_relation_size('log')`).Scan(&size)
	case "mariadb":
		err = raw.QueryRow(`
			SELECT SUM(file_size) FROM information_schema.innodb_sys_tablespaces
			WHERE name = CONCAT(DATABASE(), '/log')`).Scan(&size)
	}
	if err != nil {
		t.Fatal(err)
	}
	return size
}
