package changelog

import "context"

// Compaction deletes what nobody asks for any more.
type Compaction interface {
	// Compact advances the floor by one small transaction: over at most limit revisions
	// beyond what was swept before, and not beyond through (nor beyond head-1: the newest
	// row is never deleted). In it all rows superseded at the new floor are deleted, key
	// by key, then tombstones at or below it. Cost is in proportion to limit. Only one
	// replica does it at a time; another gets Busy. Swept < through asks for another call.
	//
	// Of the rows that it deletes, those that retention names move to a second table, past, in the same
	// transaction; for the others it notes there what is lost. Without rules, which retention == nil
	// means, it also notes that nothing in past is complete from then on.
	Compact(ctx context.Context, through int64, limit int, retention *Retention) (Compacted, error)

	// Trim deletes rows of past, at most limit and in one transaction: those that have expired
	// now, in Unix milliseconds, or if retention is nil all. Deleted == limit asks for another call.
	// Busy is that of Compact.
	Trim(ctx context.Context, retention *Retention, now int64, limit int) (Compacted, error)

	// Bound deletes rows of past, those that expire first and what goes with them, while its keys and values have
	// more than so many bytes; at most limit and in one transaction. Past > bytes asks for another call.
	// Busy is that of Compact.
	//
	// The number of bytes is in the table meta, and changes with past in one transaction, so that nobody has to
	// add the rows up: past may have millions. A file's size would not do, because a table on a server does not
	// shrink. It is added up only if it is not known: at the first call, and when a version of plinth that
	// knows nothing of it has compacted. It has the revision up to which compaction had looked beside it, by which that
	// shows.
	Bound(ctx context.Context, bytes int64, limit int) (Compacted, error)

	// Refit gives rows of past with id > after, at most limit, the expiry that retention gives them, and
	// deletes those that are too many; in one transaction. Swept is the last of them, or after if
	// there were none. Busy is that of Compact.
	Refit(ctx context.Context, retention *Retention, after int64, limit int) (Compacted, error)

	// Forget deletes all versions of a key but the current one of a key that exists, and returns how
	// many. The floor becomes the head, so that nobody asks for them: the tombstone goes even if it
	// is the newest row. What is deleted is overwritten where the program can do that (SQLite).
	Forget(ctx context.Context, key string) (removed int64, err error)

	// Cut makes through the floor at once, in one small transaction under the write lock, if
	// it is above the floor, which may lie above the newest row then. Rows are left for Compact
	// to sweep. It returns the floor that it found.
	Cut(ctx context.Context, through int64) (found int64, err error)

	// Supersede deletes the predecessors of at most limit rows after an id, up to through, or to
	// the floor if that is lower, in one small transaction. Swept says how far it came. What
	// is at or below after must be swept. The row of a key stays itself, also if it is a tombstone.
	Supersede(ctx context.Context, after, through int64, limit int) (Compacted, error)

	// Reclaim gives disk space of deleted rows back where that is the program's job
	// (SQLite: incremental vacuum and WAL truncation), in steps that block no writer
	// for long.
	Reclaim(ctx context.Context) error

	// Defragment gives all space of deleted rows back to the file system. Of a server it makes the
	// table anew, which takes as long as there is data, and everybody may have to wait for it.
	Defragment(ctx context.Context) error
}

// Compacted is the outcome of one step of compaction.
type Compacted struct {
	Floor   int64 // the floor now
	Swept   int64 // all rows up to here were looked at
	Deleted int64 // rows deleted by this call
	Kept    int64 // of these, rows that moved to past
	Past    int64 // after Bound, bytes of the keys and values in past
	Busy    bool  // another replica is compacting; nothing was done
}
