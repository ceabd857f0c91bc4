package backup

import (
	"errors"
	"fmt"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	magic   = "PLNTHBAK"
	version = 1 // of the format

	// fullChunk is how long a chunk is before it is written, mostChunk how long one can be, which
	// bounds what a reader takes for one. A chunk has at least one record.
	fullChunk = 256 << 10
	mostChunk = 16 << 20
)

// Kinds of records.
const (
	kindHeader  = 1
	kindAuthor  = 2
	kindRow     = 3
	kindSummary = 4
	kindOld     = 5
)

// Flags of a row.
const flagDeleted = 1

// Header says what a backup is of.
type Header struct {
	Program  string            `json:"program"` // version of the plinth that wrote it
	Cluster  string            `json:"cluster"` // id of the log
	Revision int64             `json:"revision"`
	Floor    int64             `json:"floor"` // compacted revision
	Swept    int64             `json:"swept"` // see sqlstore.MetaSwept
	Time     time.Time         `json:"time"`
	History  bool              `json:"history"`         // with old versions and deletions
	About    int64             `json:"about"`           // how many rows follow, at most and roughly
	Kept     map[string]int64  `json:"kept,omitempty"`  // see changelog.Frozen; without history none
	Marks    map[string]string `json:"marks,omitempty"` // where the objects of the log came from
}

// Summary says what a backup has.
type Summary struct {
	Rows    int64 `json:"rows"`          // of the log
	Old     int64 `json:"old,omitempty"` // versions beside the log
	Authors int64 `json:"authors"`
	Bytes   int64 `json:"bytes"` // of values
}

var (
	// ErrNotBackup says that something is no backup at all.
	ErrNotBackup = errors.New("not a backup of plinth's")
	// ErrNewer says that a newer plinth has written a backup.
	ErrNewer = errors.New("written by a newer plinth")
	// ErrCut says that a backup ends before its end.
	ErrCut = errors.New("cut off")
	// ErrAltered says that a backup is not as it was written.
	ErrAltered = errors.New("altered after it was written")
)

func altered(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrAltered, fmt.Sprintf(format, args...))
}

// Record is an author, a row of the log, or an old version beside it.
type Record struct {
	Number int64             // of Author
	Author *changelog.Author // nil: it is a row
	Row    *changelog.Row    // valid until the next record is read
	Old    *changelog.OldRow // the same
}
