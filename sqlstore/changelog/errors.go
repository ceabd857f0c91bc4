package changelog

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

	// ErrNoLog says that there is no database, or no log in it, and that Open was told to
	// make none.
	ErrNoLog = errors.New("there is no plinth database")

	// ErrKey says that a key is longer than MaxKeyBytes, names no resource or has bytes
	// that not every dialect can store as text.
	ErrKey = errors.New("invalid key")

	// ErrKind says that a log is of another kind than was asked for.
	ErrKind = errors.New("the database is used for something else")

	// ErrNotEmpty says that a log that is to be filled holds objects already.
	ErrNotEmpty = errors.New("target holds objects already")
)
