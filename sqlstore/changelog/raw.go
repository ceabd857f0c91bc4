package changelog

import "context"

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

// Kind says what a log is used for. The first Open decides, and a later one with another kind
// is refused.
type Kind string

const (
	KindAPI  Kind = "api"  // objects of the Kubernetes API; rows are written by Log.Append
	KindEtcd Kind = "etcd" // raw keys with versions and leases; rows are written by Log.Transact
)

// Lease is a lease of a log of raw keys.
type Lease struct {
	ID      int64
	TTL     int64 // granted, in seconds
	Expires int64 // by the clock of leases, Unix milliseconds
}

// Leases are what raw keys may be attached to. Their clock is the database server's, if there is one.
type Leases interface {
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
