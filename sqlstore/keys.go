package sqlstore

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const (
	// firstRevision is that of the empty state, as in etcd.
	firstRevision = 1

	// pollBytes is what the events of one Poll of raw keys weigh, and one revision more: their values
	// are held together until all are sent, which may be never, by thousands of watches.
	pollBytes = 256 << 10
	// rawFirst is how many rows of raw keys a first page of the log has: values of clients of etcd may be large.
	rawFirst = 16
)

// Keys is the face of a Store for raw keys, that of etcd: transactions, reads and leases.
type Keys struct {
	*shared
	state    *state
	cache    *cache
	values   *values
	hints    *hints
	heads    *headReader
	setBacks *setBacks
	commits  *committer
	compact  *compactor

	refused error // why nobody may use this face; nil: it is that of the Store
	written int64 // newest id of transactions; owned by the committer's goroutine
}

// Values returns the values of raw keys' entries, in their order: from memory, or from the log
// those that are not there. ErrCompacted if one is in neither.
func (k *Keys) Values(ctx context.Context, entries []*Entry) ([][]byte, error) {
	values := make([][]byte, len(entries))
	var missing []int64
	for i, e := range entries {
		value, ok := e.value()
		if !ok {
			missing = append(missing, e.Revision)
		}
		values[i] = value
	}
	if missing == nil {
		return values, nil
	}
	read, err := k.log.Values(ctx, missing)
	if err != nil {
		return nil, fmt.Errorf("read values: %w", err)
	}
	for i, e := range entries {
		if values[i] != nil {
			continue
		}
		value, ok := read[e.Revision]
		if !ok {
			return nil, fmt.Errorf("read the value of row %d: %w", e.Revision, changelog.ErrCompacted)
		}
		if value == nil {
			value = []byte{}
		}
		values[i] = value
		k.cache.fill(e, value)
	}
	return values, nil
}

// Attached returns the keys that are attached to a lease now, in order.
func (k *Keys) Attached(lease int64) []string {
	k.state.mu.RLock()
	keys := slices.Collect(maps.Keys(k.state.leases[lease]))
	k.state.mu.RUnlock()
	slices.Sort(keys)
	return keys
}

// Leases, Renew, Expired and Beat are those of the log. When a lease is not among those that Leases or Renew returns, reads after
// Sync see that its keys are gone.
func (k *Keys) Leases(ctx context.Context, ids []int64) (leases []changelog.Lease, now int64, err error) {
	leases, now, err = k.log.Leases(ctx, ids)
	if err == nil && (ids == nil || len(leases) < len(ids)) {
		err = k.heads.syncOwn(ctx)
	}
	return leases, now, err
}

// Renew makes leases expire later: see RawLog.
func (k *Keys) Renew(ctx context.Context, ids []int64) (renewed []changelog.Lease, err error) {
	renewed, err = k.log.Renew(ctx, ids)
	if err == nil && len(renewed) < len(ids) {
		err = k.heads.syncOwn(ctx)
	}
	return renewed, err
}

// Expired returns leases that have expired: see RawLog.
func (k *Keys) Expired(ctx context.Context, limit int) (ids []int64, next int64, err error) {
	return k.log.Expired(ctx, limit)
}

// Beat notes that somebody watches over the leases: see RawLog.
func (k *Keys) Beat(ctx context.Context, most int64) (shifted int64, err error) {
	return k.log.Beat(ctx, most)
}

// CutTo makes the last id of revision the floor at once, and returns the compacted revision that
// it found, which may have been the same or higher already. Rows below are deleted in the
// background, or, if swept is asked for, before CutTo returns. The rows of revision itself stay
// until the next cut, its tombstones too: a watch may start with them. What they superseded goes.
func (k *Keys) CutTo(ctx context.Context, revision int64, swept bool) (found int64, err error) {
	through := changelog.LastID(revision)
	floor, err := k.log.Cut(ctx, through)
	if err != nil {
		return 0, fmt.Errorf("compact to revision %d: %w", revision, err)
	}
	if revision == firstRevision {
		k.state.advance(through) // it has no rows
	}
	k.state.raiseFloor(through)
	if found, _ = changelog.Split(floor); floor >= through {
		return found, nil
	}
	if swept {
		return found, k.compact.request(ctx, through)
	}
	k.compact.sweep()
	return found, nil
}

// compactTo deletes what has become superfluous by a floor that CutTo has set: everything below the
// compacted revision as for objects, and then what its own rows have superseded. Those themselves
// stay until the next cut, its tombstones too: a watch may start with them.
func (k *Keys) compactTo(floor int64) error {
	if floor == 0 {
		return nil
	}
	c, after, through := k.compact, k.first(floor)-1, k.end(floor)
	deleted, err := c.sweepTo(after)
	if err != nil {
		return err
	}
	superseded, err := c.inSteps(through, func() (done changelog.Compacted, err error) {
		done, err = c.log.Supersede(c.ctx, after, through, compactStep)
		after = done.Swept
		return done, err
	})
	if err != nil {
		return err
	}
	return c.reclaim(deleted + superseded)
}
