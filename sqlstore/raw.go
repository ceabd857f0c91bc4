package sqlstore

import (
	"context"
	"errors"
	"sort"
)

// A log of raw keys (KindEtcd) differs from that of objects in what its rows are called. Its
// transactions may write several rows, which are one revision together: a row's id is
// revision<<SubBits + its place in the transaction, from 0. For the Store and the Log ids are
// what they are for objects: numbers that grow. Whoever serves raw keys splits them.
const SubBits = 22

// Split returns the revision of an id of a log of raw keys, and the row's place in it.
func Split(id int64) (revision, sub int64) { return id >> SubBits, id & (1<<SubBits - 1) }

// FirstID and LastID return the least and the greatest id that a row of revision can have.
func FirstID(revision int64) int64 { return revision << SubBits }
func LastID(revision int64) int64  { return (revision+1)<<SubBits - 1 }

// end returns the last id of the revision that id belongs to. A revision of an object has but one.
func (s *Store) end(id int64) int64 {
	if !s.raw {
		return id
	}
	revision, _ := Split(id)
	return LastID(revision)
}

// shown returns the revision that clients know an id by.
func (s *Store) shown(id int64) int64 {
	if !s.raw {
		return id
	}
	revision, _ := Split(id)
	return revision
}

// below returns the last id before the revision that id belongs to.
func (s *Store) below(id int64) int64 {
	revision, _ := Split(id)
	return FirstID(revision) - 1
}

// whole returns how many of the n rows of a full page are of revisions that are surely complete:
// all but those of the last one. id returns the i-th row's.
func (s *Store) whole(n int, id func(i int) int64) int {
	if !s.raw || n == 0 {
		return n
	}
	first := FirstID(id(n-1) >> SubBits)
	return sort.Search(n, func(i int) bool { return id(i) >= first })
}

// follows says that no row is missing between two that are read one after the other.
func (s *Store) follows(id, next int64) bool {
	if !s.raw {
		return next == id+1
	}
	revision, _ := Split(id)
	return next == id+1 || next == FirstID(revision+1)
}

// Kind says what a log is used for. The first Open decides, and a later one with another kind
// is refused.
type Kind string

const (
	KindAPI  Kind = "api"  // objects of the Kubernetes API; rows are written by Log.Append
	KindEtcd Kind = "etcd" // raw keys with versions and leases; rows are written by Log.Transact
)

// ErrKind says that a log is of another kind than was asked for.
var ErrKind = errors.New("the database is used for something else")

// Lease is a lease of a log of raw keys.
type Lease struct {
	ID      int64
	TTL     int64 // granted, in seconds
	Expires int64 // by the clock of leases, Unix milliseconds
}

// Ask is what Log.Transact is to find out under the write lock.
type Ask struct {
	After  int64   // rows after this id
	Limit  int     // at most so many
	Leases []int64 // ids of leases
}

// Found is what Log.Transact has found under the write lock.
type Found struct {
	Head
	At     int64   // commit time for new rows, as Appended.At
	Now    int64   // of the clock of leases: the database server's if there is one, else this machine's
	Rows   []Row   // the rows asked for, in order of their ids
	Leases []Lease // those of the leases asked for that exist
}

// Decision is what Log.Transact is to write. Leases are deleted before others are granted.
type Decision struct {
	Rows   []Row   // with ids that grow, above the head; At is Found.At
	Grant  []Lease // new ones
	Revoke []int64 // to be deleted
}

// RawLog is the part of a Log that only logs of raw keys need.
type RawLog interface {
	// Transact runs decide in one transaction: it takes the write lock, reads what ask says,
	// calls decide, writes what that decided and commits, waking other processes as Append does.
	// A decision without content, and an error of decide, which is returned as it is, end the
	// transaction without a COMMIT. decide may be called again when a deadlock made the
	// transaction start anew; it runs no SQL. Errors and ctx are as with Append.
	Transact(ctx context.Context, ask Ask, decide func(*Found) (Decision, error)) error

	// Keys is State without values.
	Keys(ctx context.Context, from, to string, revision int64, limit int) ([]Row, error)

	// Values returns the values of rows by id. Rows that are not there are left out.
	Values(ctx context.Context, ids []int64) (map[int64][]byte, error)

	// Cut makes through the floor at once, in one small transaction under the write lock, if
	// it is above the floor, which may lie above the newest row then. Rows are left for Compact
	// to sweep. It returns the floor that it found.
	Cut(ctx context.Context, through int64) (found int64, err error)

	// Supersede deletes the predecessors of at most limit rows after an id, up to through, or to
	// the floor if that is lower, in one small transaction. Swept says how far it came. What
	// is at or below after must be swept. The row of a key stays itself, also if it is a tombstone.
	Supersede(ctx context.Context, after, through int64, limit int) (Compacted, error)

	// Defragment gives all space of deleted rows back to the file system. Of a server it makes the
	// table anew, which takes as long as there is data, and everybody may have to wait for it.
	Defragment(ctx context.Context) error

	// Leases returns the leases with these ids, or all if ids is nil, in order of their ids,
	// and the time of their clock.
	Leases(ctx context.Context, ids []int64) (leases []Lease, now int64, err error)

	// Renew makes leases expire their TTL from now, but for those that have expired, and
	// returns those that it has renewed.
	Renew(ctx context.Context, ids []int64) ([]Lease, error)

	// Expired returns at most limit leases that have expired, longest ago first, and the
	// milliseconds until the next one does: 0 if one has, negative if there is no lease.
	Expired(ctx context.Context, limit int) (ids []int64, next int64, err error)

	// Beat notes that somebody watches over the leases. If nobody did for longer than most
	// milliseconds, all expire later by that time: the time that no server ran does not count.
	// If the clock was set back by more, they expire sooner by that.
	// It returns by how many milliseconds they expire later.
	Beat(ctx context.Context, most int64) (shifted int64, err error)
}
