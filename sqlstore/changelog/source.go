package changelog

import "context"

// Source is a log that can be read as it is at one moment. Every Log is one; package dialects opens
// others, which only read, beside a process that serves the log.
type Source interface {
	// Kind is what the log is used for.
	Kind() Kind

	// ClusterID names this log for as long as it lives; made by the first migration.
	ClusterID() string

	// Size returns the space that the log takes. It may walk through an index, so it is for
	// people and for metrics.
	Size(ctx context.Context) (Size, error)

	// Freeze calls f with the log as it is now. Writers go on meanwhile, but what f may still read
	// keeps its space, so f is not to take for ever.
	Freeze(ctx context.Context, f func(Frozen) error) error

	// Examine has the database itself look at what it keeps, and compares its tables, columns, indexes and
	// views with those that the migrations make. found is called with each fault: what it is in, such as
	// "table log", and what is wrong. It only reads, in transactions of its own, which may last: integrity_check
	// in SQLite, amcheck in Postgres if it is installed, CHECK TABLE in MySQL, but not of the tables that are known to
	// be damaged: it makes an index that it has found damaged unusable. An error says that the database could not
	// be asked.
	Examine(ctx context.Context, damaged []string, found func(in, what string)) error

	Close() error
}

// Frozen is a log at one moment: whatever its methods read belongs to that, whatever is written or
// compacted meanwhile. One goroutine reads at a time, and no method is called by the function that
// another one calls.
type Frozen interface {
	// Head is the end of the log.
	Head(ctx context.Context) (Head, error)

	// Meta returns what the log says of itself: Meta has the names.
	Meta(ctx context.Context) (map[string]string, error)

	// Writers calls f with all authors in order of their numbers.
	Writers(ctx context.Context, f func(number int64, a Author) error) error

	// All calls f with all rows in order of their ids, or with those that are in force alone. Value
	// and AuditID are valid until f returns.
	All(ctx context.Context, inForce bool, f func(*Row) error) error

	// Kept returns from which revision on the state of which resources is known, by prefix; what has no
	// prefix of its own has the empty one. Empty: no old versions are kept beside the log.
	Kept(ctx context.Context) (map[string]int64, error)

	// Old calls f with all old versions that are kept beside the log, in order of their ids. Value and
	// AuditID are valid until f returns.
	Old(ctx context.Context, f func(*OldRow) error) error

	// Page calls f with the next rows after an id, in order of their ids: with limit of them at most, with
	// at least one if there is one. Unlike All it can go on behind a row that cannot be read: the rows before that
	// were given to f, the error is not ErrUnavailable, or it is ErrDamaged, and the next Page may begin anywhere.
	Page(ctx context.Context, after int64, limit int, f func(*Row) error) error

	// OldPage is Page for the old versions beside the log.
	OldPage(ctx context.Context, after int64, limit int, f func(*OldRow) error) error

	// Links is Page for rows in order of their keys, and rows of one key in order of their ids. They come
	// without values, versions and leases. indexed says to find them by the index of keys; else they
	// are sorted, at a cost for each page that is in proportion to the whole log.
	Links(ctx context.Context, after Link, indexed bool, limit int, f func(*Row) error) error

	// NextLink reads from the index of keys alone what comes after a link; false: nothing does.
	NextLink(ctx context.Context, after Link) (next Link, ok bool, err error)

	// Broken calls f with the old versions beside the log whose successor is missing: id and key.
	Broken(ctx context.Context, f func(*Row) error) error

	// Told returns how many changes the view history has, and the sum of their revisions.
	Told(ctx context.Context) (changes, revisions int64, err error)

	// Shown returns how many objects the view objects has, and the sum of their versions.
	Shown(ctx context.Context) (objects, versions int64, err error)
}

// Link is a row's place in the index of keys.
type Link struct {
	Key      string
	Revision int64
}

// OldRow is an old version that is kept beside the log.
type OldRow struct {
	Row
	UntilID int64 // of the change that superseded it; of a tombstone its own
	UntilAt int64 // time of that change
	Expires int64 // when it is kept no longer, in Unix milliseconds
}

// Names of what a log says of itself, beside its marks, whose names begin with MetaMark.
const (
	MetaFloor   = "floor"  // compacted revision
	MetaSwept   = "swept"  // compaction has looked at all rows up to here
	MetaFormat  = "format" // of the log
	MetaCluster = "cluster_id"
	MetaKind    = "kind"
	MetaMark    = "mark/"
)

// Format1 is the only value of MetaFormat so far.
const Format1 = "1"
