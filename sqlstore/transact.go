package sqlstore

import (
	"context"
	"errors"
)

// Transaction is one transaction on raw keys.
type Transaction struct {
	// Leases that Run may ask about, put keys with, or revoke.
	Leases []int64
	// Run decides what is written. It sees the newest state, under the write lock of the log,
	// and what it has written itself. It may be called more than once, with different states,
	// and only the last call counts. If it returns an error, nothing is written and the error is
	// Do's. It must neither keep tx nor block.
	Run func(tx *Tx) error
}

// Outcome is what became of a Transaction.
type Outcome struct {
	// Revision is that of the rows written, or, if none was written, of the state that Run saw.
	Revision int64
	Wrote    bool // rows, not only leases
}

// Do commits t. Everything that it writes has one revision, one above that of the transaction
// before, and is seen at once. Do returns when it is durable and visible to readers of this
// Store. Errors are those of Commit, and of t.Run.
func (s *Store) Do(ctx context.Context, t Transaction) (Outcome, error) {
	return Outcome{}, errors.ErrUnsupported
}

// Read runs f on the current state, as a transaction that writes nothing. The caller calls
// Sync before, if it must be the most recent. f may not write; it is called again when values that it
// asked for had to be read from the log.
func (s *Store) Read(ctx context.Context, f func(tx *Tx) error) (Outcome, error) {
	return Outcome{}, errors.ErrUnsupported
}

// Tx is the state that a Transaction sees.
type Tx struct{}

// Revision returns the revision of the state, without what this transaction writes.
func (tx *Tx) Revision() int64 { return 0 }

// Get returns the entry of key, nil if there is none.
func (tx *Tx) Get(key string) *Entry { return nil }

// Ascend calls f for the entries with from <= key < to in order of keys until f returns false.
func (tx *Tx) Ascend(from, to string, f func(*Entry) bool) {}

// Count returns the number of entries with from <= key < to.
func (tx *Tx) Count(from, to string) int64 { return 0 }

// Value returns the value of an entry. ok is false if it is not in memory: then Run goes on as
// it can and its result does not count: it is run again when the value has been read.
func (tx *Tx) Value(e *Entry) (value []byte, ok bool) { return nil, false }

// Put writes a key and returns its new entry.
func (tx *Tx) Put(key string, value []byte, lease int64) *Entry { return nil }

// Delete deletes a key that exists.
func (tx *Tx) Delete(key string) {}

// Lease returns a lease that is named in Transaction.Leases or was granted by tx.
func (tx *Tx) Lease(id int64) (Lease, bool) { return Lease{}, false }

// Now returns the time of the leases' clock, Unix milliseconds.
func (tx *Tx) Now() int64 { return 0 }

// Grant makes a lease that expires ttl seconds from now.
func (tx *Tx) Grant(id, ttl int64) {}

// Revoke deletes a lease and the keys that are attached to it, which it returns the number of.
func (tx *Tx) Revoke(id int64) (keys int) { return 0 }

// Version and Lease of an entry of a raw key.
func (e *Entry) Version() int64 { return 0 }
func (e *Entry) Lease() int64   { return 0 }

// Values returns the values of entries, in their order: from memory, or from the log those
// that are not in memory. ErrCompacted if one is in neither.
func (s *Store) Values(ctx context.Context, entries []*Entry) ([][]byte, error) {
	return nil, errors.ErrUnsupported
}

// Attached returns the keys that are attached to a lease now, in order.
func (s *Store) Attached(lease int64) []string { return nil }

// Leases, Renew, Expired and Beat are those of the log.
func (s *Store) Leases(ctx context.Context, ids []int64) (leases []Lease, now int64, err error) {
	return s.log.Leases(ctx, ids)
}
func (s *Store) Renew(ctx context.Context, ids []int64) ([]Lease, error) {
	return s.log.Renew(ctx, ids)
}
func (s *Store) Expired(ctx context.Context, limit int) (ids []int64, next int64, err error) {
	return s.log.Expired(ctx, limit)
}
func (s *Store) Beat(ctx context.Context, most int64) (shifted int64, err error) {
	return s.log.Beat(ctx, most)
}

// CutTo makes revision's last id the floor at once: Log.Cut. It returns the floor's revision that
// it found. Rows below are deleted in the background, or before CutTo returns if swept is asked
// for.
func (s *Store) CutTo(ctx context.Context, revision int64, swept bool) (found int64, err error) {
	return 0, errors.ErrUnsupported
}

// WatchRange returns a Watcher of all changes after id of raw keys with from <= key < to; see
// Watch. Its Poll never divides a revision.
func (s *Store) WatchRange(from, to string, after int64) (*Watcher, error) {
	return nil, errors.ErrUnsupported
}
