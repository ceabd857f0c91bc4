package sqlstore

import (
	"errors"
	"fmt"
)

var (
	// ErrUnavailable says that the database cannot be used now: unreachable, read-only,
	// full. Nothing was written. It is worth trying again later.
	ErrUnavailable = errors.New("database unavailable")

	// ErrFull says that the database's disk is nearly full. Only changes that free space are
	// written then: deletes, and changes to objects that are being deleted. ErrFull wraps
	// ErrUnavailable.
	ErrFull = fmt.Errorf("%w: its disk is nearly full", ErrUnavailable)

	// ErrSetBack says that the database is not what it was: it was set back to an older state, or
	// others have written what is there in the place of what was. Nothing was written. The Store
	// goes on by itself when it has read the database anew. ErrSetBack wraps ErrUnavailable.
	ErrSetBack = fmt.Errorf("%w: it was set back to an older state", ErrUnavailable)

	// ErrOther says that the log of another cluster is in the place of the one that was opened, such as a backup
	// of the wrong one. Nothing is written to it. ErrOther wraps ErrUnavailable: the right one may come back.
	ErrOther = fmt.Errorf("%w: it is that of another cluster", ErrUnavailable)

	// ErrRestart says that this process cannot use the database any more, but one that opens it anew can. It comes
	// within an ErrUnavailable.
	ErrRestart = errors.New("restart plinth")

	// ErrDamaged says that something stored cannot be read although the database is there: a page on the disk, a
	// table that is missing. Who serves takes it for a database that is away (it may be being restored), so
	// it may wrap ErrUnavailable; who searches for damage has found some.
	ErrDamaged = errors.New("database is damaged")

	// ErrUnknown says that a COMMIT failed and the change may or may not be there.
	ErrUnknown = errors.New("outcome of the commit is unknown")

	// ErrClosed is returned by every method of a Store or Log after Close.
	ErrClosed = errors.New("store is closed")

	// ErrCompacted says that a revision is below the floor.
	ErrCompacted = errors.New("revision is compacted")

	// ErrUndecodable says that a value in the log is not what Options.Check asks for: something else than this program
	// has changed or written it. It never becomes readable by itself.
	ErrUndecodable = errors.New("the stored value is damaged")

	// ErrNoLog says that there is no database, or no log in it, and that Open was told to
	// make none.
	ErrNoLog = errors.New("there is no plinth database")

	// ErrFuture says that a revision did not come up within the time waited for it.
	ErrFuture = errors.New("revision is in the future")

	// ErrKey says that a key is longer than MaxKeyBytes, names no resource or has bytes
	// that not every dialect can store as text.
	ErrKey = errors.New("invalid key")

	// ErrTooLarge says that one change is larger than Options.MaxValueBytes.
	ErrTooLarge = errors.New("object is too large")
)

// ConflictError says that a change's expectation did not hold. Commit's caller reads
// Current, decides anew, and may try again.
type ConflictError struct {
	Key     string
	Expect  int64  // what the change expected; 0 for absence
	Current *Entry // the key's entry now, nil if it is absent
}

func (e *ConflictError) Error() string {
	if e.Current == nil {
		return fmt.Sprintf("key %s: expected revision %d, found none", e.Key, e.Expect)
	}
	return fmt.Sprintf("key %s: expected revision %d, found %d", e.Key, e.Expect, e.Current.Revision)
}
