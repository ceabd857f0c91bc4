// Package inspect has what the dialects share about logs that are opened for reading only.
package inspect

import (
	"context"
	"fmt"
	"io"

	"github.com/plinth-io/plinth/migrations"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Log is an open log.
type Log interface {
	changelog.Summarized
	io.Closer
}

// Summary reads the summary of a log and closes it. classify is the dialect's.
func Summary(ctx context.Context, l Log, classify func(error) error) (changelog.Summary, error) {
	defer l.Close()
	s, err := changelog.Summarize(ctx, l)
	return s, classify(err)
}

// Readable returns the log if this plinth can read its schema, and closes it otherwise. The row has the version of
// the schema, and whether it is dirty.
func Readable[L io.Closer](l L, d migrations.Dialect, row interface{ Scan(...any) error }, classify func(error) error) (L, error) {
	var version int
	var dirty bool
	err := row.Scan(&version, &dirty)
	if err != nil {
		err = fmt.Errorf("read schema version: %w", classify(err))
	} else {
		err = migrations.Readable(d, version, dirty)
	}
	if err != nil {
		l.Close()
		var none L
		return none, err
	}
	return l, nil
}
