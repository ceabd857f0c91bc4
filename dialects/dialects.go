// Package dialects opens the log that a data source name (DSN) points at.
package dialects

import (
	"context"
	"fmt"
	"strings"

	"github.com/plinth-io/plinth/dialects/sqlite"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options are what a DSN does not say.
type Options struct {
	// Logf reports what an operator should know, such as a lost connection; nil: nothing.
	Logf func(format string, args ...any)
}

// Open opens the log at dsn and brings its schema up to date:
//
//	sqlite://path            a file, made if it is missing
//	sqlite://:memory:        gone when the log is closed; each Open has its own
//
// with these parameters after a question mark:
//
//	durability=full          (SQLite) what a commit survives: full, normal, off
//	maxconns=N               the most connections it opens
//
// Errors are one line and never contain a password.
func Open(ctx context.Context, dsn string, o Options) (sqlstore.Log, error) {
	scheme, rest, ok := strings.Cut(dsn, "://")
	if !ok {
		return nil, fmt.Errorf("DSN has no scheme; write sqlite://path")
	}
	switch strings.ToLower(scheme) {
	case "sqlite":
		so, err := parseSQLite(rest)
		if err != nil {
			return nil, err
		}
		return sqlite.Open(ctx, so)
	}
	return nil, fmt.Errorf("DSN has an unknown scheme; write sqlite://path")
}
