package changelog

import (
	"context"
)

// Log is the append-only table in one SQL dialect, divided by who asks for what. All methods are safe
// for concurrent use except Append, Transact and AddAuthors, which have one caller at a time, the same one. Errors that
// mean the database is away, read-only or full wrap ErrUnavailable; no error text contains a password.
type Log interface {
	Appender   // the committer
	Reader     // readers, and the tail
	Historian  // readers of what was superseded
	Compaction // the compactor
	Leases     // who serves raw keys
	Filling    // who brings a log from elsewhere, or takes it there
	Database   // who watches over the database
	Source     // who reads the log as it is at one moment
}

// Appender adds rows.
type Appender interface {
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

	// Transact runs decide in one transaction: it takes the write lock, reads what ask says,
	// calls decide, writes what that decided and commits, waking other processes as Append does.
	// A decision without content, and an error of decide, which is returned as it is, end the
	// transaction without a COMMIT. decide may be called again when a deadlock made the
	// transaction start anew; it runs no SQL. Errors and ctx are as with Append.
	Transact(ctx context.Context, ask Ask, decide func(*Found) (Decision, error)) error

	// Authors returns the newest authors, at most limit, with their numbers.
	Authors(ctx context.Context, limit int) (map[Author]int64, error)

	// AddAuthors adds authors, in one transaction of its own, and returns their numbers.
	// Like Append it has one caller at a time.
	AddAuthors(ctx context.Context, authors []Author) (numbers []int64, err error)

	// Expect says by what the log is known again; nil: by nothing. From then on Append, Transact, Head,
	// Rows, Steps, State, Keys, Count and Values check it, at the database and at no further round trip, and
	// fail with ErrSetBack if it does not hold (see Witness.Check): Append and Transact under the write
	// lock, so that nothing is written; reads after what they have read. A log that is Exclusive
	// need not check.
	Expect(w *Witness)

	// Raise makes the log continue above revision and marks everything below as
	// compacted: the floor becomes revision if it is lower and revision > head. The
	// rows stay; the next Compact sweeps them. For restored and copied databases.
	Raise(ctx context.Context, revision int64) error
}

// Reader reads the present: what is above the floor.
type Reader interface {
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

	// Keys is State without values.
	Keys(ctx context.Context, from, to string, revision int64, limit int) ([]Row, error)

	// Count returns how many rows State would return without a limit.
	Count(ctx context.Context, from, to string, revision int64) (int64, error)

	// Values returns the values of rows by id. Rows that are not there are left out.
	Values(ctx context.Context, ids []int64) (map[int64][]byte, error)

	// Origins returns where the rows with these ids come from. It leaves out rows of which that is
	// not known, and rows that are not there.
	Origins(ctx context.Context, ids []int64) (map[int64]Origin, error)

	// Time returns the revision and commit time of the oldest row with id >= revision, of those in
	// past, too; zeros if there is none. The compactor searches with it for the row of a moment.
	Time(ctx context.Context, revision int64) (found, at int64, err error)
}

// Historian reads the past: what is below the floor, too, as far as it is kept.
type Historian interface {
	// History returns the changes that a query asks for, in the order of revisions or against it, with
	// their authors and without values. It does not look at the floor, and does not wait for rows to be
	// durable: all that it is asked for was read before.
	History(ctx context.Context, q HistoryQuery) ([]HistoryRow, error)

	// Past is State for revisions below the floor, too, as far as they are known exactly. A revision
	// is known of all resources in the range if nothing that was in force at it or later is lost,
	// and of a single key (see OneKey) if none of its versions is. Else ErrCompacted. Rows have the sizes of
	// their values in their place, and no origins.
	Past(ctx context.Context, from, to string, revision int64, limit int) ([]HistoryRow, error)

	// KnownFrom returns the revision from which on all changes of the keys in [from, to) and all their states
	// are known.
	KnownFrom(ctx context.Context, from, to string) (int64, error)

	// OldValues returns the values of rows by id, at most MostOldValues, also of those in past. Rows that
	// are not there are left out.
	OldValues(ctx context.Context, ids []int64) (map[int64][]byte, error)
}

// Database says in which state the database is.
type Database interface {
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

	// Room returns the free bytes of the file system that the database is on, and its size, without
	// asking the database; -1 where that is not known.
	Room() (free, size int64)

	// Cluster reads from the database whose log is there now: not that of ClusterID if another one was restored
	// in its place.
	Cluster(ctx context.Context) (id string, err error)

	// Made says that this Open has made the log: before, there was none, or a part of one
	// that a crash had left. Of several processes that open it at once, one has made it.
	Made() bool
}

// Follower is who follows a Log by Follow: a Store. Only Hint must be there.
type Follower struct {
	// Hint is called whenever another process may have appended: with the newest revision if the log
	// knows it, else with 0.
	Hint func(head int64)
	// Known returns the newest revision that the follower has. What is not above it is no news.
	Known func() int64
	// Told has a token when another process said that it has appended. It is the caller who makes the
	// follower look; the log needs to know because more may come soon.
	Told <-chan struct{}
	// AllTell tells whether all other processes say when they append after a while without: a log that
	// asks the database again and again may do so seldom then.
	AllTell func() bool
	// Polls is called with whether the log asks the database again and again, because that does not
	// say by itself when there is news.
	Polls func(polls bool)
}
