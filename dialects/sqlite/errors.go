package sqlite

import (
	"errors"
	"fmt"

	sqlite "github.com/mattn/go-sqlite3"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// classify wraps errors that mean that the database cannot be used now.
func classify(err error) error {
	var e sqlite.Error
	if !errors.As(err, &e) || errors.Is(err, changelog.ErrUnknown) {
		return err
	}
	switch e.Code {
	case sqlite.ErrBusy, sqlite.ErrReadonly, sqlite.ErrFull, sqlite.ErrIoErr, sqlite.ErrCantOpen, sqlite.ErrPerm, sqlite.ErrNomem:
		return fmt.Errorf("%w: %w", changelog.ErrUnavailable, err)
	case sqlite.ErrCorrupt, sqlite.ErrNotADB:
		if !errors.Is(err, changelog.ErrDamaged) {
			return fmt.Errorf("%w: %w", changelog.ErrDamaged, err)
		}
	}
	return err
}

// commitError judges a failed COMMIT. A lock not given, a full disk or a read-only file
// stop it before the commit record is written; after any other error the record may be
// in the write-ahead log without being known to be safe.
func commitError(err error) error {
	var e sqlite.Error
	if errors.As(err, &e) {
		switch e.Code {
		case sqlite.ErrBusy, sqlite.ErrFull, sqlite.ErrReadonly:
			return err
		}
	}
	return fmt.Errorf("%w: %w", changelog.ErrUnknown, err)
}

// isFull says that SQLite found no room, on the disk or in a quota.
func isFull(err error) bool { return isCode(err, sqlite.ErrFull) }
