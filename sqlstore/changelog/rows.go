package changelog

import (
	"math"
)

// Row is one row of the log.
type Row struct {
	Revision       int64  // id
	Key            string // as Format has it; of an object /registry/<group>/<resource>/[<namespace>/]<name>
	CreateRevision int64  // revision of the row that created this incarnation of the key
	Deleted        bool   // a tombstone; Value is the last state
	At             int64  // commit time, Unix milliseconds, never less than an older row's
	Value          []byte // as Format has it; of an object JSON without resourceVersion

	// Of objects only, and only when rows are written; see Author.
	Author  int64  // 0: not known
	AuditID []byte // nil: not known

	// Of raw keys only; 0 for objects.
	Version int64 // puts since the key was created, the first is 1
	Lease   int64 // 0: none
}

// Head is the end of the log at one moment.
type Head struct {
	Revision int64 // newest revision ever drawn and committed, or the floor if that is higher
	Floor    int64 // compacted revision
}

// Step is a change together with what it replaced, for a watch that reads the log.
type Step struct {
	Row
	// Prev is the key's row before this one if the key existed then, else nil. It is
	// always known for revisions above the floor.
	Prev *Row
}

// PageBytes bounds the values that Log.Rows and Log.State return at once: large rows may come after small ones, of which
// many were asked for. The last row of a page may go beyond it.
const PageBytes = 8 << 20

// Full says that a page of rows, of which at most limit were asked for, ends because it is full: there may be more.
func Full(rows []Row, limit int) bool { return len(rows) >= limit || Heavy(rows) }

// Heavy says that the values of rows have PageBytes.
func Heavy(rows []Row) bool {
	bytes := 0
	for i := range rows {
		bytes += len(rows[i].Value)
	}
	return bytes >= PageBytes
}

// HistoryQuery asks for changes that are still there, in the log or kept beside it.
type HistoryQuery struct {
	From, To       string // of keys in [From, To); both empty: of all keys
	After, Through int64  // of revisions with After < revision <= Through
	Oldest         bool   // the oldest first; else the newest
	Sizes          bool   // with the sizes of values
	Limit          int    // most changes
}

// HistoryRow is a change with who has made it.
type HistoryRow struct {
	Row           // Author and Value are not set: see Store.OldEntries
	Origin Origin // empty if it is not known
	Size   int64  // bytes of the value as the log holds it, if they were asked for
}

// MostOldValues is how many values OldValues returns at once, at most.
const MostOldValues = 500

// Forever is a revision that no log reaches.
const Forever = math.MaxInt64
