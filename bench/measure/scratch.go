package measure

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"

	"github.com/plinth-io/plinth/dialects"
)

// MakeDirs makes the directory of results, and one of temporary files in it, whose absolute path it
// returns.
func MakeDirs(results string) (temporary string, err error) {
	if err := os.MkdirAll(results, 0o755); err != nil {
		return "", err
	}
	if temporary, err = os.MkdirTemp(results, "scratch-"); err != nil {
		return "", err
	}
	return filepath.Abs(temporary)
}

// Scratch is a database of its own, made for one measurement.
type Scratch struct {
	DSN  string
	Dir  string // of SQLite's files
	Drop func(context.Context) error
}

// NewScratch makes a database beside the one that dsn names, which it leaves alone; that
// needs the right to create databases. SQLite's is a file in dir.
func NewScratch(ctx context.Context, dsn, dir string) (*Scratch, error) {
	var s *Scratch
	var err error
	// In lower case, which is what Postgres takes a name without quotes for.
	name := "plinth_bench_" + strings.ToLower(rand.Text()[:12])
	switch dialects.Scheme(dsn) {
	case "sqlite":
		s, err = scratchFile(dsn, filepath.Join(dir, name))
	case "postgres":
		s, err = scratchPostgres(ctx, dsn, name)
	case "mysql":
		s, err = scratchMySQL(ctx, dsn, name)
	default:
		err = dialects.Check(dsn, dialects.Options{})
	}
	if err != nil {
		return nil, fmt.Errorf("make a scratch database: %w", err)
	}
	return s, nil
}

func scratchFile(dsn, dir string) (*Scratch, error) {
	o, err := dialects.SQLiteOptions(dsn)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	fresh := "sqlite://" + filepath.Join(dir, "plinth.db")
	if o.Durability != "" {
		fresh += "?durability=" + string(o.Durability)
	}
	return &Scratch{fresh, dir, func(context.Context) error { return os.RemoveAll(dir) }}, nil
}

func scratchPostgres(ctx context.Context, dsn, name string) (*Scratch, error) {
	config, err := dialects.PostgresConfig(dsn, dialects.Options{})
	if err != nil {
		return nil, err
	}
	exec := func(ctx context.Context, query string) error {
		conn, err := pgx.ConnectConfig(ctx, config)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, query)
		return errors.Join(err, conn.Close(ctx))
	}
	// The name is of letters and digits, so it needs no quotes.
	if err := exec(ctx, `CREATE DATABASE `+name); err != nil {
		return nil, err
	}
	drop := func(ctx context.Context) error { return exec(ctx, `DROP DATABASE `+name+` WITH (FORCE)`) }
	return withDatabase(dsn, name, drop)
}

func scratchMySQL(ctx context.Context, dsn, name string) (*Scratch, error) {
	config, err := dialects.MySQLConfig(dsn, dialects.Options{})
	if err != nil {
		return nil, err
	}
	exec := func(ctx context.Context, query string) error {
		connector, err := mysql.NewConnector(config)
		if err != nil {
			return err
		}
		db := sql.OpenDB(connector)
		_, err = db.ExecContext(ctx, query)
		return errors.Join(err, db.Close())
	}
	if err := exec(ctx, `CREATE DATABASE `+name); err != nil {
		return nil, err
	}
	drop := func(ctx context.Context) error { return exec(ctx, `DROP DATABASE `+name) }
	return withDatabase(dsn, name, drop)
}

func withDatabase(dsn, name string, drop func(context.Context) error) (*Scratch, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("the DSN cannot be parsed") // the parser's words repeat it
	}
	u.Path = "/" + name
	return &Scratch{DSN: u.String(), Drop: drop}, nil
}
