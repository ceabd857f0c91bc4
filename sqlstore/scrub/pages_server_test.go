package scrub_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/object"
	. "github.com/plinth-io/plinth/sqlstore/scrub"
)

var author = []changelog.Author{{User: "somebody", Verb: "create"}}

// place is one in a server's files.
type place struct {
	relation string // or the name of a table's file
	block    int
	rubbish  int // see rubbish; or gone
}

// gone says that a file is deleted.
const gone = -1

// TestPagesPostgres damages files of a Postgres server while it is down: of tables, of the large values beside them,
// and of indexes. amcheck is installed in every second database.
func TestPagesPostgres(t *testing.T) {
	t.Parallel()
	s := logtest.StartPostgres(t)
	large := "(SELECT reltoastrelid FROM pg_class WHERE oid = 'log'::regclass)"
	emptyLarge := "(SELECT reltoastrelid FROM pg_class WHERE oid = 'past'::regclass)"
	places := []place{
		{"log", 2, 1}, {"log", 2, 0}, {"log", 1, 2}, {"log", 2, 3}, {large, 3, 1}, {large, 3, 0},
		{"(SELECT indexrelid FROM pg_index WHERE indrelid = " + large + ")", 1, 2},
		{"log_pkey", 1, 2}, {"log_key_id", 2, 0}, {"log_key_id", 1, 1}, {"past", 1, 1}, {"past_key_id", 1, 2}, {"past_expires", 1, 0}, {"author", 0, 2},
		{"meta", 0, 1}, {"meta", 0, 0}, {"meta", 0, 2}, {"meta", 0, 3}, {"meta_pkey", 1, 1},
		{"log_key_id", 0, gone}, {"past_expires", 0, gone}, {"past", 0, gone}, {emptyLarge, 0, gone}, {"meta", 0, gone},
	}
	var dsns, files []string
	for i, p := range places {
		dsn := logtest.CreateDatabase(t, s)
		log := openLog(t, dsn)
		fillMany(t, log, strings.HasPrefix(p.relation, "past"))
		if _, err := log.AddAuthors(t.Context(), author); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			logtest.Exec(t, dsn, `CREATE EXTENSION amcheck`)
		}
		relation := p.relation
		if relation[0] != '(' {
			relation = "'" + relation + "'"
		}
		dsns, files = append(dsns, dsn), append(files, postgresFile(t, dsn, relation+"::regclass"))
	}
	s.Stop()
	for i, p := range places {
		spoil(t, files[i], 8192, p)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for i, p := range places {
		noticed(t, dsns[i], p)
	}
}

// TestPagesMariaDB damages files of a MariaDB server while it is down.
func TestPagesMariaDB(t *testing.T) {
	t.Parallel()
	s := logtest.StartMariaDB(t)
	places := []place{
		{"log", 3, 1}, {"log", 4, 1}, {"log", 5, 1}, {"log", 6, 0}, {"log", 8, 3}, {"log", 20, 2},
		{"past", 3, 1}, {"past", 4, 1}, {"past", 5, 0}, {"past", 8, 1}, {"meta", 3, 1}, {"author", 3, 2},
	}
	var dsns, files []string
	for _, p := range places {
		dsn := logtest.CreateDatabase(t, s)
		log := openLog(t, dsn)
		fillMany(t, log, strings.HasPrefix(p.relation, "past"))
		if _, err := log.AddAuthors(t.Context(), author); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		dsns, files = append(dsns, dsn), append(files, mariadbFile(t, dsn, p.relation))
	}
	s.Stop()
	for i, p := range places {
		spoil(t, files[i], 16384, p)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	for i, p := range places {
		noticed(t, dsns[i], p)
	}
}

// spoil writes rubbish into a page of a file.
func spoil(t *testing.T, path string, size int, p place) {
	t.Helper()
	if p.rubbish == gone {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	page := make([]byte, size)
	if _, err := f.ReadAt(page, int64(size*p.block)); err != nil {
		t.Fatalf("%s: page %d: %v", path, p.block, err)
	}
	rubbish[p.rubbish].write(page, rand.New(rand.NewPCG(uint64(p.block), 7)))
	if _, err := f.WriteAt(page, int64(size*p.block)); err != nil {
		t.Fatal(err)
	}
}

// noticed searches a database.
func noticed(t *testing.T, dsn string, p place) {
	t.Helper()
	name := "no file of " + p.relation
	if p.rubbish != gone {
		name = fmt.Sprintf("%s in page %d of %s", rubbish[p.rubbish].name, p.block, p.relation)
	}
	source, err := dialects.Peek(t.Context(), dsn, dialects.Options{})
	if err != nil { // it is noticed
		if !strings.Contains(err.Error(), "damaged") {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	defer source.Close()
	var problems []string
	report, err := Log(t.Context(), source, Options{Found: func(p Problem) { problems = append(problems, p.String()) }})
	if err != nil || report.Problems == 0 {
		t.Errorf("%s: %+v, %v", name, report, err)
	}
	t.Logf("%s: %d rows, problems: %.200q", name, report.Rows, problems)
}

// TestSaysDamaged damages what a write reads, under a store. The database says so itself, and that is told at once, without a search.
func TestSaysDamaged(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB) *dbserver.Server{"postgres": logtest.StartPostgres, "mariadb": logtest.StartMariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			dsn := logtest.CreateDatabase(t, s)
			log := openLog(t, dsn)
			fillMany(t, log, false)
			store, err := object.Open(t.Context(), log, sqlstore.Options{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			var file string
			size, p := 8192, place{"log_pkey", 1, 1}
			if name == "postgres" {
				file = postgresFile(t, dsn, "'log_pkey'")
			} else {
				file, size, p = mariadbFile(t, dsn, "log"), 16384, place{"log", 3, 1}
			}
			s.Stop()
			spoil(t, file, size, p)
			if err := s.Start(); err != nil {
				t.Fatal(err)
			}
			for store.Damaged() == 0 {
				_, err := store.Commit(t.Context(), sqlstore.Change{Key: prefix + "new", Value: []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"new","namespace":"default"}}`)})
				t.Log(err)
				if err == nil {
					t.Fatal("the write has not met the damage")
				}
			}
		})
	}
}

// postgresFile is where a relation is stored.
func postgresFile(t *testing.T, dsn, relation string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	var dir, path string
	err = conn.QueryRow(t.Context(), `SELECT current_setting('data_directory'), pg_relation_filepath(`+relation+`)`).Scan(&dir, &path)
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, path)
}

// mariadbFile is where a table is stored.
func mariadbFile(t *testing.T, dsn, table string) string {
	t.Helper()
	db, err := dbserver.OpenMySQL(dsn)
	if err != nil {
		t.Fatal(err)
	}
	var dir, name string
	err = db.QueryRow(`SELECT @@datadir, DATABASE()`).Scan(&dir, &name)
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name, table+".ibd")
}
