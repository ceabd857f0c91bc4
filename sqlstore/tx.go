package sqlstore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// Tx is the state that a Transaction sees.
type Tx struct {
	entries  *entryMap // of a batch that writes a copy, which nobody else reads
	revision int64     // of the state, without what this transaction writes
	at, now  int64
	attached func(lease int64) []string // keys that may be attached
	leases   map[int64]changelog.Lease  // those asked for that exist, as the batch has left them

	pinned  map[int64][]byte // values that were read for this transaction, by id
	missing []*Entry         // entries whose values it asked for in vain

	updates  []update          // of the batch so far
	replaced []*Entry          // by each of this transaction's updates; nil: the key was absent
	granted  []changelog.Lease // by the batch
	revoked  []int64
	undone   undo
}

// undo is what a transaction that fails puts back, beside its updates.
type undo struct {
	leases  map[int64]changelog.Lease // nil: unchanged
	granted []changelog.Lease
	revoked []int64
}

// begin makes tx the state that one more transaction of the batch sees.
func (tx *Tx) begin(pinned map[int64][]byte) {
	tx.pinned, tx.missing, tx.replaced = pinned, nil, tx.replaced[:0]
	tx.undone = undo{granted: tx.granted, revoked: tx.revoked}
}

// finish ends the transaction, which has failed with err, and returns its outcome.
func (tx *Tx) finish(err error) (Outcome, error) {
	n := len(tx.replaced)
	switch {
	case tx.missing != nil:
		err = &missingError{tx.missing}
	case err == nil && n > 1<<changelog.SubBits:
		err = fmt.Errorf("%w: it changes %d keys", ErrTooLarge, n)
	}
	if err != nil {
		tx.rollBack()
		return Outcome{}, err
	}
	if n > 0 {
		tx.revision++
	}
	return Outcome{Revision: tx.revision, Wrote: n > 0}, nil
}

// puts says whether the transaction takes space.
func (tx *Tx) puts() bool {
	mine := tx.updates[len(tx.updates)-len(tx.replaced):]
	return slices.ContainsFunc(mine, func(u update) bool { return !u.deleted })
}

func (tx *Tx) rollBack() {
	for ; len(tx.replaced) > 0; tx.replaced = tx.replaced[:len(tx.replaced)-1] {
		last := len(tx.updates) - 1
		key, before := tx.updates[last].entry.Key, tx.replaced[len(tx.replaced)-1]
		if before == nil {
			tx.entries.Delete(key)
		} else {
			tx.entries.Set(key, before)
		}
		tx.updates = tx.updates[:last]
	}
	tx.granted, tx.revoked = tx.undone.granted, tx.undone.revoked
	if tx.undone.leases != nil {
		tx.leases = tx.undone.leases
	}
}

// missingError says that a transaction needs values that are only in the log.
type missingError struct{ entries []*Entry }

func (e *missingError) Error() string {
	return fmt.Sprintf("%d values are not in memory", len(e.entries))
}

// Revision returns the revision of the state, without what this transaction writes.
func (tx *Tx) Revision() int64 { return tx.revision }

// Now returns the time of the leases' clock, Unix milliseconds.
func (tx *Tx) Now() int64 { return tx.now }

// Get returns the entry of key, nil if there is none.
func (tx *Tx) Get(key string) *Entry {
	e, _ := tx.entries.Get(key)
	return e
}

// Ascend calls f for the entries with from <= key < to in order of keys until f returns false.
func (tx *Tx) Ascend(from, to string, f func(*Entry) bool) {
	tx.entries.Ascend(from, func(key string, e *Entry) bool { return key < to && f(e) })
}

// Count returns the number of entries with from <= key < to.
func (tx *Tx) Count(from, to string) int64 {
	return max(0, int64(rank(tx.entries, to)-rank(tx.entries, from)))
}

// Value returns the value of an entry. ok is false if it is not in memory: then Run goes on as
// it can, and its result does not count: it is run again when the value was read.
func (tx *Tx) Value(e *Entry) (value []byte, ok bool) {
	if value, ok = e.value(); ok {
		return value, true
	}
	if value, ok = tx.pinned[e.Revision]; ok {
		return value, true
	}
	tx.missing = append(tx.missing, e)
	return nil, false
}

// Put writes a key and returns its new entry.
func (tx *Tx) Put(key string, value []byte, lease int64) *Entry {
	if value == nil {
		value = []byte{}
	}
	row := changelog.Row{Revision: tx.nextID(), Key: key, At: tx.at, Value: value, Version: 1, Lease: lease}
	row.CreateRevision = row.Revision
	if before := tx.Get(key); before != nil {
		row.CreateRevision, row.Version = before.CreateRevision, before.Version()+1
	}
	e := rawEntry(&row)
	before, _ := tx.entries.Set(key, e)
	tx.updates = append(tx.updates, update{entry: e})
	tx.replaced = append(tx.replaced, before)
	return e
}

// Delete deletes a key, if there is one.
func (tx *Tx) Delete(key string) {
	before, ok := tx.entries.Delete(key)
	if !ok {
		return
	}
	row := changelog.Row{Revision: tx.nextID(), Key: key, CreateRevision: before.CreateRevision, At: tx.at, Value: []byte{}}
	tx.updates = append(tx.updates, update{entry: rawEntry(&row), deleted: true})
	tx.replaced = append(tx.replaced, before)
}

func (tx *Tx) nextID() int64 { return changelog.FirstID(tx.revision+1) + int64(len(tx.replaced)) }

// Lease returns a lease that is named in Transaction.Leases or was granted by the batch.
func (tx *Tx) Lease(id int64) (changelog.Lease, bool) {
	lease, ok := tx.leases[id]
	return lease, ok
}

// Grant makes a lease that expires ttl seconds from now.
func (tx *Tx) Grant(id, ttl int64) changelog.Lease {
	tx.saveLeases()
	lease := changelog.Lease{ID: id, TTL: ttl, Expires: tx.now + ttl*1000}
	tx.leases[id] = lease
	tx.granted = append(tx.granted, lease)
	return lease
}

// Revoke deletes a lease and the keys that are attached to it, the number of which it returns.
func (tx *Tx) Revoke(id int64) (keys int) {
	tx.saveLeases()
	delete(tx.leases, id)
	granted := slices.IndexFunc(tx.granted, func(l changelog.Lease) bool { return l.ID == id })
	if granted >= 0 {
		tx.granted = slices.Delete(slices.Clone(tx.granted), granted, granted+1)
	} else {
		tx.revoked = append(tx.revoked, id)
	}
	candidates := tx.attached(id)
	for _, u := range tx.updates {
		candidates = append(candidates, u.entry.Key)
	}
	slices.Sort(candidates)
	for _, key := range slices.Compact(candidates) {
		if e := tx.Get(key); e != nil && e.Lease() == id {
			tx.Delete(key)
			keys++
		}
	}
	return keys
}

// saveLeases remembers the leases before the first change that the transaction makes to them.
func (tx *Tx) saveLeases() {
	if tx.undone.leases == nil {
		tx.undone.leases = maps.Clone(tx.leases)
	}
}

// Transaction is one transaction on raw keys.
type Transaction struct {
	// Leases that Run may ask about, put keys with, or revoke.
	Leases []int64
	// Bytes is about how much Run writes at most.
	Bytes int
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
