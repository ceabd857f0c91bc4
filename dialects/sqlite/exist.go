package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"

	"github.com/plinth-io/plinth/dialects/internal/refused"
)

// findFile refuses a path without a file. An empty file has no log either.
func findFile(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return refused.Missing("there is no such file")
	}
	if err == nil && info.Size() == 0 {
		return refused.Missing("the file is empty")
	}
	return err
}

// findLog refuses a database that has no log. It must be locked.
func findLog(ctx context.Context, name string) error {
	db := sql.OpenDB(connector(name))
	defer db.Close()
	var tables int
	err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master WHERE name IN ('log', 'meta')`).Scan(&tables)
	if err == nil && tables < 2 {
		err = refused.Missing("it is a SQLite database without plinth's tables")
	}
	return err
}
