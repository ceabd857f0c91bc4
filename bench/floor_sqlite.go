package bench

import (
	"context"
	"database/sql/driver"
	"net/url"
	"time"

	sqlite "github.com/mattn/go-sqlite3"

	"github.com/plinth-io/plinth/dialects"
	dialect "github.com/plinth-io/plinth/dialects/sqlite"
)

// sqliteFloor uses the driver without database/sql, as the dialect does. With database/sql the
// floor would be lower.
type sqliteFloor struct {
	conn                  *sqlite.SQLiteConn
	durability            dialect.Durability
	begin, commit, append *sqlite.SQLiteStmt
}

func openSQLiteFloor(_ context.Context, dsn string) (floor, error) {
	o, err := dialects.SQLiteOptions(dsn)
	if err != nil {
		return nil, err
	}
	if o.Durability == "" {
		o.Durability = dialect.Full
	}
	name := "file:" + (&url.URL{Path: o.Path}).EscapedPath() + "?mode=rw&_journal_mode=WAL&_synchronous=" + string(o.Durability)
	conn, err := (&sqlite.SQLiteDriver{}).Open(name)
	if err != nil {
		return nil, err
	}
	f := &sqliteFloor{conn: conn.(*sqlite.SQLiteConn), durability: o.Durability}
	if err := f.prepare(); err != nil {
		conn.Close()
		return nil, err
	}
	return f, nil
}

func (f *sqliteFloor) prepare() error {
	for _, s := range []struct {
		stmt **sqlite.SQLiteStmt
		sql  string
	}{
		{&f.begin, `BEGIN IMMEDIATE`},
		{&f.commit, `COMMIT`},
		{&f.append, `INSERT INTO log (id, key, create_id, deleted, at, value) VALUES (?, ?, ?, 0, ?, ?)`},
	} {
		stmt, err := f.conn.Prepare(s.sql)
		if err != nil {
			return err
		}
		*s.stmt = stmt.(*sqlite.SQLiteStmt)
	}
	return nil
}

func (f *sqliteFloor) insert(ctx context.Context, rows []row) error {
	// Without a context that can end, the driver needs no goroutine for each statement.
	ctx = context.WithoutCancel(ctx)
	if _, err := f.begin.ExecContext(ctx, nil); err != nil {
		return err
	}
	now := time.Now().UnixMilli()
	for _, r := range rows {
		_, err := f.append.ExecContext(ctx, []driver.NamedValue{
			{Ordinal: 1, Value: r.id}, {Ordinal: 2, Value: r.key}, {Ordinal: 3, Value: r.id},
			{Ordinal: 4, Value: now}, {Ordinal: 5, Value: r.value},
		})
		if err != nil {
			return err
		}
	}
	_, err := f.commit.ExecContext(ctx, nil)
	return err
}

func (f *sqliteFloor) describe(context.Context) (version, settings string, err error) {
	version, _, _ = sqlite.Version()
	return version, "write-ahead log, synchronous=" + string(f.durability), nil
}

func (f *sqliteFloor) close(context.Context) error {
	for _, s := range []*sqlite.SQLiteStmt{f.begin, f.commit, f.append} {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return f.conn.Close()
}
