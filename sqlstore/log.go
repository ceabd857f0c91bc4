package sqlstore

import "context"

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

// Log is the append-only table in one SQL dialect. All methods are safe for concurrent
// use except Append, which has one caller at a time. Errors that mean the database is
// away, read-only or full wrap ErrUnavailable; no error text contains a password.
type Log interface {
	RawLog

	// Append writes a batch in one transaction (an empty one takes the lock and writes
	// nothing, which tells whether the database takes writes): it takes the write lock, reads head
	// and floor, checks each change's expectation against the newest row of its key, draws
	// revisions for those that hold in order of the batch, starting at head+1, inserts them in one
	// statement (or one prepared statement's loop) and commits. Keys in a batch are distinct. A
	// change that fails its expectation never fails the batch. An error before COMMIT was sent
	// means nothing was written; an error of COMMIT itself wraps ErrUnknown. ctx counts until
	// COMMIT is sent; COMMIT itself has a bound of the dialect's. Deadlocks and lock timeouts are
	// retried inside as long as COMMIT was not sent. ErrMoved if Move has stopped the log.
	Append(ctx context.Context, batch []Change) (Appended, error)

	// Authors returns the newest authors, at most limit, with their numbers.
	Authors(ctx context.Context, limit int) (map[Author]int64, error)

	// AddAuthors adds authors, in one transaction of its own, and returns their numbers.
	// Like Append it has one caller at a time.
	AddAuthors(ctx context.Context, authors []Author) (numbers []int64, err error)

	// Origins returns where the rows with these ids come from. It leaves out rows of which that is
	// not known, and rows that are not there.
	Origins(ctx context.Context, ids []int64) (map[int64]Origin, error)

	// Expect says by what the log is known again; nil: by nothing. From then on Append, Transact, Head,
	// Rows, Steps, State, Keys, Count and Values check it, at the database and at no further round trip, and
	// fail with ErrSetBack if it does not hold (see Witness.Check): Append and Transact under the write
	// lock, so that nothing is written; reads after what they have read. A log that is Exclusive
	// need not check.
	Expect(w *Witness)

	// Head reads the end of the log.
	Head(ctx context.Context) (Head, error)

	// Rows returns at most limit rows of all keys with revision > after in revision
	// order. It does not look at the floor: only the tail calls it, which never falls
	// below (it starts from a full read by State). ErrCompacted if the row that Expect has named
	// is compacted. Of objects it ends behind the row with which values have PageBytes; see Full.
	Rows(ctx context.Context, after int64, limit int) ([]Row, error)

	// Steps returns at most limit changes of keys in [from, to) with
	// after < revision <= through, in revision order, each with what it replaced.
	// ErrCompacted if after < floor, judged in the same snapshot as the rows.
	Steps(ctx context.Context, from, to string, after, through int64, limit int) ([]Step, error)

	// State returns at most limit rows, in key order, that were in force at revision:
	// for each key in [from, to) its newest row with id <= revision, unless that is a
	// tombstone. ErrCompacted if revision < floor, judged in the same snapshot. It ends behind the row
	// with which values have PageBytes; see Full.
	State(ctx context.Context, from, to string, revision int64, limit int) ([]Row, error)

	// Count returns how many rows State would return without a limit.
	Count(ctx context.Context, from, to string, revision int64) (int64, error)

	// History returns the changes that a query asks for, in the order of revisions or against it, with
	// their authors and without values. It does not look at the floor, and does not wait for rows to be
	// durable: all that it is asked for was read before.
	History(ctx context.Context, q HistoryQuery) ([]HistoryRow, error)

	// Time returns the revision and commit time of the oldest row with id >= revision, of those in
	// past, too; zeros if there is none. The compactor searches with it for the row of a moment.
	Time(ctx context.Context, revision int64) (found, at int64, err error)

	// Compact advances the floor by one small transaction: over at most limit revisions
	// beyond what was swept before, and not beyond through (nor beyond head-1: the newest
	// row is never deleted). In it all rows superseded at the new floor are deleted, key
	// by key, then tombstones at or below it. Cost is in proportion to limit. Only one
	// replica does it at a time; another gets Busy. Swept < through asks for another call.
	//
	// Of the rows that it deletes, those that keep names move to a second table, past, in the same
	// transaction; for the others it notes there what is lost. Without rules, which keep == nil
	// means, it also notes that nothing in past is complete from then on.
	Compact(ctx context.Context, through int64, limit int, keep *Keep) (Compacted, error)

	// Past is State for revisions below the floor, too, as far as they are known exactly. A revision
	// is known of all resources in the range if nothing that was in force at it or later is lost,
	// and of a single key (see OneKey) if none of its versions is. Else ErrCompacted. Rows have the sizes of
	// their values in their place, and no origins.
	Past(ctx context.Context, from, to string, revision int64, limit int) ([]HistoryRow, error)

	// OldValues returns the values of rows by id, at most MostOldEntries, also of those in past. Rows that
	// are not there are left out.
	OldValues(ctx context.Context, ids []int64) (map[int64][]byte, error)

	// Trim deletes rows of past, at most limit and in one transaction: those that have expired
	// now, in Unix milliseconds, or if keep is nil all. Deleted == limit asks for another call.
	// Busy is that of Compact.
	Trim(ctx context.Context, keep *Keep, now int64, limit int) (Compacted, error)

	// Refit gives rows of past with id > after, at most limit, the expiry that keep gives them, and
	// deletes those that are too many; in one transaction. Swept is the last of them, or after if
	// there were none. Busy is that of Compact.
	Refit(ctx context.Context, keep *Keep, after int64, limit int) (Compacted, error)

	// Forget deletes all versions of a key but the current one of a key that exists, and returns how
	// many. The floor becomes the head, so that nobody asks for them: the tombstone goes even if it
	// is the newest row. What is deleted is overwritten where the program can do that (SQLite).
	Forget(ctx context.Context, key string) (removed int64, err error)

	// Reclaim gives disk space of deleted rows back where that is the program's job
	// (SQLite: incremental vacuum and WAL truncation), in steps that block no writer
	// for long.
	Reclaim(ctx context.Context) error

	// Raise makes the log continue above revision and marks everything below as
	// compacted: the floor becomes revision if it is lower and revision > head. The
	// rows stay; the next Compact sweeps them. For restored and copied databases.
	Raise(ctx context.Context, revision int64) error

	// Follow tells f whenever another process may have appended, until ctx ends. It reconnects by
	// itself until then.
	Follow(ctx context.Context, f Follower)

	// Exclusive says that no other process can append, so that the process itself knows
	// the head.
	Exclusive() bool

	// Condition returns what keeps the log from taking changes, as far as that is known
	// without asking the database: nil, ErrUnavailable, or ErrFull, with which deletes are
	// still taken. It does no I/O.
	Condition() error

	// Size returns the space that the log takes. It may walk through an index, so it is for
	// people and for metrics.
	Size(ctx context.Context) (Size, error)

	// Room returns the free bytes of the file system that the database is on, and its size, without
	// asking the database; -1 where that is not known.
	Room() (free, size int64)

	// Kind is what the log is used for.
	Kind() Kind

	// ClusterID names this log for as long as it lives; made by the first migration.
	ClusterID() string

	// Cluster reads from the database whose log is there now: not that of ClusterID if another one was restored
	// in its place.
	Cluster(ctx context.Context) (id string, err error)

	// Made says that this Open has made the log: before, there was none, or a part of one
	// that a crash had left. Of several processes that open it at once, one has made it.
	Made() bool

	// Freeze calls f with the log as it is at one moment; see Source.
	Freeze(ctx context.Context, f func(Frozen) error) error

	// Examine has the database look at what it keeps; see Source.
	Examine(ctx context.Context, damaged []string, found func(in, what string)) error

	// Fill lets fill write to the log, which must be empty, in one transaction: if fill or anything
	// else fails, nothing of it is there. A log that has rows, or a floor, gets ErrNotEmpty.
	Fill(ctx context.Context, fill func(Filler) error) error

	// Move stops the log for good, because its objects have moved: it takes the write lock and
	// notes where they are. From its commit on every Append of every process fails with the ErrMoved
	// that Moved makes of to, which has 255 bytes at most. It returns the head, which stays as it is.
	// ErrMoved if it has moved elsewhere already. An empty to takes the log back.
	Move(ctx context.Context, to string) (head int64, err error)

	// Marks returns the marks of the log: what SetMarks has written and not removed.
	Marks(ctx context.Context) (map[string]string, error)

	// SetMarks writes marks in one transaction; an empty value removes one. Names have at
	// most 59 bytes and values 255.
	SetMarks(ctx context.Context, marks map[string]string) error

	Close() error
}

// Compacted is the outcome of one step of compaction.
type Compacted struct {
	Floor   int64 // the floor now
	Swept   int64 // all rows up to here were looked at
	Deleted int64 // rows deleted by this call
	Kept    int64 // of these, rows that moved to past
	Busy    bool  // another replica is compacting; nothing was done
}
