package kine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/mattn/go-sqlite3" // registers the driver sqlite3

	"github.com/plinth-io/plinth/dialects"
)

// ErrNoTable says that a database has no table of kine's.
var ErrNoTable = errors.New("there is no table kine")

// Table is kine's table as it was when it was opened. Its methods have one caller at a time.
type Table struct {
	db      *sql.DB
	tx      *sql.Tx
	dialect string
}

// Open opens the table in the database at dsn, which is one of plinth's DSNs.
func Open(ctx context.Context, dsn string) (*Table, error) {
	t := &Table{dialect: dialects.Scheme(dsn)}
	var err error
	if t.db, err = connect(t.dialect, dsn); err != nil {
		return nil, err
	}
	isolation := sql.LevelRepeatableRead
	if t.dialect == "sqlite" {
		isolation = sql.LevelDefault
	}
	t.tx, err = t.db.BeginTx(ctx, &sql.TxOptions{Isolation: isolation, ReadOnly: t.dialect != "sqlite"})
	if err == nil {
		err = t.find(ctx)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// connect opens a database that is there. It does no I/O but to look for a file.
func connect(dialect, dsn string) (*sql.DB, error) {
	switch dialect {
	case "sqlite":
		o, err := dialects.SQLiteOptions(dsn)
		if err != nil {
			return nil, err
		}
		if o.Path == "" {
			return nil, ErrNoTable // in memory
		}
		if _, err := os.Stat(o.Path); err != nil {
			return nil, err
		}
		return sql.Open("sqlite3", "file:"+(&url.URL{Path: o.Path}).EscapedPath()+"?mode=ro&_busy_timeout=30000")
	case "postgres":
		config, err := dialects.PostgresConfig(dsn, dialects.Options{})
		if err != nil {
			return nil, err
		}
		return stdlib.OpenDB(*config), nil
	case "mysql":
		config, err := dialects.MySQLConfig(dsn, dialects.Options{})
		if err != nil {
			return nil, err
		}
		connector, err := driver.NewConnector(config)
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	}
	return nil, dialects.Check(dsn, dialects.Options{})
}

// Close ends the transaction that the table is read in.
func (t *Table) Close() error {
	if t.tx != nil {
		_ = t.tx.Rollback() // it has read only
	}
	return t.db.Close()
}

// find returns ErrNoTable if there is none. The name is looked up first, because a statement that
// fails ends a transaction of Postgres.
func (t *Table) find(ctx context.Context) error {
	var n int
	err := t.tx.QueryRowContext(ctx, map[string]string{
		"sqlite":   `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'kine'`,
		"postgres": `SELECT count(*) FROM pg_class WHERE oid = to_regclass('kine')`,
		"mysql":    `SELECT count(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name = 'kine'`,
	}[t.dialect]).Scan(&n)
	if err == nil && n == 0 {
		err = ErrNoTable
	}
	return err
}

// Extent is what a table has.
type Extent struct {
	Revision  int64 // the newest
	Compacted int64
	Rows      int64
}

// compactionKey is the name of the row that has the compacted revision, in place of a key.
const compactionKey = "compact_rev_key"

// Extent reads what the table has.
func (t *Table) Extent(ctx context.Context) (e Extent, err error) {
	err = t.tx.QueryRowContext(ctx, `
		SELECT coalesce(max(id), 0), count(*),
		       coalesce((SELECT max(prev_revision) FROM kine WHERE name = 'compact_rev_key'), 0)
		FROM kine`).Scan(&e.Revision, &e.Rows, &e.Compacted)
	return e, err
}

// Row is one write of a key.
type Row struct {
	Revision       int64
	Key            string
	Created        bool // the key was not there before
	Deleted        bool
	CreateRevision int64 // of the row that created the key, 0 if kine does not say
	Lease          int64 // time to live in seconds
	Value          []byte
}

// pageBytes is how many bytes of values a page has at most, but for its last row.
const pageBytes = 4 << 20

// Page returns at most limit rows after a revision, in order, and the revision to go on after, which
// is 0 at the end. Rows that are kine's own are left out.
func (t *Table) Page(ctx context.Context, after int64, limit int) (page []Row, next int64, err error) {
	query := `
		SELECT id, name, created, deleted, create_revision, lease, value
		FROM kine WHERE id > ? ORDER BY id LIMIT ?`
	if t.dialect == "postgres" {
		query = `
		SELECT id, name, created, deleted, create_revision, lease, value
		FROM kine WHERE id > $1 ORDER BY id LIMIT $2`
	}
	return t.page(ctx, query, after, limit)
}

// Current is Page for the rows that are the newest of a key that is there.
func (t *Table) Current(ctx context.Context, after int64, limit int) (page []Row, next int64, err error) {
	query := `
		SELECT id, name, created, deleted, create_revision, lease, value
		FROM kine k WHERE id > ? AND deleted = 0
		AND NOT EXISTS (SELECT 1 FROM kine n WHERE n.name = k.name AND n.id > k.id)
		ORDER BY id LIMIT ?`
	if t.dialect == "postgres" {
		query = `
		SELECT id, name, created, deleted, create_revision, lease, value
		FROM kine k WHERE id > $1 AND deleted = 0
		AND NOT EXISTS (SELECT 1 FROM kine n WHERE n.name = k.name AND n.id > k.id)
		ORDER BY id LIMIT $2`
	}
	return t.page(ctx, query, after, limit)
}

func (t *Table) page(ctx context.Context, query string, after int64, limit int) (page []Row, next int64, err error) {
	rows, err := t.tx.QueryContext(ctx, query, after, limit)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for bytes := 0; bytes < pageBytes && rows.Next(); {
		r, err := scan(rows)
		if err != nil {
			return nil, 0, err
		}
		next = r.Revision
		bytes += len(r.Value)
		if !r.internal() {
			page = append(page, r)
		}
	}
	return page, next, rows.Err()
}

// Gap returns the first number after a revision, and at or below through, that no row has, although a
// later one has; 0 if there is none. A row may come there yet: in Postgres, MySQL and MariaDB,
// transactions take their numbers before they end. kine fills such gaps when it sees them.
func (t *Table) Gap(ctx context.Context, after, through int64) (int64, error) {
	query := `SELECT id FROM kine WHERE id > ? AND id <= ? ORDER BY id`
	if t.dialect == "postgres" {
		query = `SELECT id FROM kine WHERE id > $1 AND id <= $2 ORDER BY id`
	}
	rows, err := t.tx.QueryContext(ctx, query, after, through)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	for want := after + 1; rows.Next(); want++ {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return 0, err
		}
		if id != want {
			return want, nil
		}
	}
	return 0, rows.Err()
}

func scan(rows *sql.Rows) (r Row, err error) {
	var name sql.NullString
	var created, deleted, createRevision, lease sql.NullInt64
	if err := rows.Scan(&r.Revision, &name, &created, &deleted, &createRevision, &lease, &r.Value); err != nil {
		return r, fmt.Errorf("read a row of kine: %w", err)
	}
	r.Key, r.CreateRevision, r.Lease = name.String, createRevision.Int64, max(lease.Int64, 0)
	r.Created, r.Deleted = created.Int64 != 0, deleted.Int64 != 0
	if r.Created {
		r.CreateRevision = r.Revision
	}
	return r, nil
}

// internal tells whether r is no write of a client: it has the compacted revision, or fills a gap
// between revisions.
func (r *Row) internal() bool {
	return r.Key == compactionKey || r.Deleted && r.Key == "gap-"+strconv.FormatInt(r.Revision, 10)
}

// There tells whether the database at dsn has a table of kine's with rows in it. It waits no longer
// than patience for an answer.
func There(ctx context.Context, dsn string, patience time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	t, err := Open(ctx, dsn)
	if errors.Is(err, ErrNoTable) || errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer t.Close()
	e, err := t.Extent(ctx)
	return e.Rows > 0, err
}
