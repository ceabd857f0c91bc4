package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// transactRows is how many rows of other processes a transaction reads under the write lock. If
// there are more, the tail reads them first.
const transactRows = 1000

// errBehind says that other processes wrote more than transactRows, or compacted some of it: the tail
// knows what to do then.
var errBehind = errors.New("the state is behind the log")

// Do commits t. Everything that it writes has one revision, one above that of the transaction
// before, and is seen at once. Do returns when it is durable and visible to readers of this
// Store. Errors are those of Commit, and of t.Run.
func (k *Keys) Do(ctx context.Context, t Transaction) (Outcome, error) {
	if k.refused != nil {
		return Outcome{}, fmt.Errorf("transaction: %w", k.refused)
	}
	var pinned map[int64][]byte
	for {
		p := newPending(Change{})
		p.transaction, p.pinned = &t, pinned
		if err := k.commits.submit(p); err != nil {
			return Outcome{}, err
		}
		outcome, err := k.awaitOutcome(ctx, p)
		var missing *missingError
		if !errors.As(err, &missing) {
			return outcome, err
		}
		if pinned, err = k.pin(ctx, missing.entries, pinned); err != nil {
			return Outcome{}, err
		}
	}
}

func (k *Keys) awaitOutcome(ctx context.Context, p *pending) (Outcome, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		if err := k.commits.abandoned(ctx, p); err != nil {
			return Outcome{}, fmt.Errorf("commit: %w", err)
		}
	}
	outcome := p.outcome
	_, err := p.result()
	return outcome, err
}

// pin reads values that a transaction needs, and adds them to those that it got before.
func (k *Keys) pin(ctx context.Context, entries []*Entry, pinned map[int64][]byte) (map[int64][]byte, error) {
	values, err := k.Values(ctx, entries)
	if errors.Is(err, changelog.ErrCompacted) {
		return pinned, nil // the entries are not the newest any more: the next run finds out
	}
	if err != nil {
		return nil, err
	}
	if pinned == nil {
		pinned = make(map[int64][]byte, len(entries))
	}
	for i, e := range entries {
		pinned[e.Revision] = values[i]
	}
	return pinned, nil
}

// Read runs f on the current state, as a transaction that writes nothing. The caller calls
// Sync before, if it must be the most recent. f may not write; it is called again when values
// that it asked for had to be read from the log.
func (k *Keys) Read(ctx context.Context, f func(tx *Tx) error) (Outcome, error) {
	var pinned map[int64][]byte
	for {
		snap := k.state.current("")
		revision, _ := changelog.Split(snap.through)
		revision = max(revision, firstRevision)
		tx := &Tx{entries: snap.entries, revision: revision, pinned: pinned}
		err := f(tx)
		if tx.missing == nil {
			return Outcome{Revision: revision}, err
		}
		if pinned, err = k.pin(ctx, tx.missing, pinned); err != nil {
			return Outcome{}, err
		}
	}
}

// write runs the transactions of b in one of the log. It waits until the state has what this process wrote before, so that other processes'
// rows alone are read under the lock.
func (k *Keys) write(b *batch) error {
	leases := b.leases()
	for {
		if err := k.state.wait(k.ctx, k.written); err != nil {
			return fmt.Errorf("%w: %w", changelog.ErrUnavailable, err)
		}
		ask := changelog.Ask{After: k.state.applied.Load(), Limit: transactRows, Leases: leases}
		head := int64(0)
		err := k.within(k.o.AppendTimeout, func(ctx context.Context) error {
			return k.log.Transact(ctx, ask, func(found *changelog.Found) (changelog.Decision, error) {
				head = found.Head.Revision
				return k.decide(b, ask, found)
			})
		})
		if !errors.Is(err, errBehind) {
			if err == nil && len(b.updates) > 0 {
				k.written = b.updates[len(b.updates)-1].entry.Revision
			}
			return err
		}
		k.hints.lookFor(head)
		if !k.heads.waitForTail(k.ctx, head) {
			return fmt.Errorf("read what other servers wrote: %w", changelog.ErrUnavailable)
		}
	}
}

// decide runs the transactions of b, one after the other, on what was found under the write lock.
func (k *Keys) decide(b *batch, ask changelog.Ask, found *changelog.Found) (changelog.Decision, error) {
	if len(found.Rows) >= ask.Limit || found.Floor > k.end(ask.After) {
		return changelog.Decision{}, errBehind // above the floor alone, no row that was not read can be gone
	}
	tx := k.newTx(found)
	full := errors.Is(k.log.Condition(), changelog.ErrFull)
	b.results = b.results[:0]
	for _, p := range b.waiters {
		tx.begin(p.pinned)
		err := p.transaction.Run(tx)
		if err == nil && full && tx.puts() {
			err = fmt.Errorf("nothing was written: %w", k.log.Condition())
		}
		outcome, err := tx.finish(err)
		b.results = append(b.results, result{outcome, err})
	}
	b.appended = changelog.Appended{Head: found.Head.Revision, Floor: found.Floor, At: found.At}
	b.updates = tx.updates
	b.found, b.known = found.Rows, ask.After
	return changelog.Decision{Rows: rowsOf(tx.updates), Grant: tx.granted, Revoke: tx.revoked}, nil
}

// newTx returns the state as it is under the write lock: what this process knows, and the rows that
// were found.
func (k *Keys) newTx(found *changelog.Found) *Tx {
	snap := k.state.current("")
	revision, _ := changelog.Split(found.Head.Revision)
	tx := &Tx{
		entries:  new(entryMap),
		revision: max(revision, firstRevision),
		at:       found.At,
		now:      found.Now,
		leases:   make(map[int64]changelog.Lease, len(found.Leases)),
	}
	if snap.frozen != noEntries { // which all Stores have, while a copy changes the original
		tx.entries = snap.entries.Copy()
	}
	var foreign []string
	for i := range found.Rows {
		row := &found.Rows[i]
		if row.Revision <= snap.through {
			continue
		}
		if row.Deleted {
			tx.entries.Delete(row.Key)
		} else {
			tx.entries.Set(row.Key, rawEntry(row))
		}
		foreign = append(foreign, row.Key)
	}
	tx.attached = func(lease int64) []string { return append(k.Attached(lease), foreign...) }
	for _, lease := range found.Leases {
		tx.leases[lease.ID] = lease
	}
	return tx
}

func rowsOf(updates []update) []changelog.Row {
	rows := make([]changelog.Row, len(updates))
	for i, u := range updates {
		e := u.entry
		value, _ := e.value()
		rows[i] = changelog.Row{
			Revision: e.Revision, Key: e.Key, CreateRevision: e.CreateRevision, Deleted: u.deleted,
			At: e.At, Value: value, Version: e.Version(), Lease: e.Lease(),
		}
	}
	return rows
}

// prepare leaves out of what b's transactions have made what has been applied already: read from the log, when a hint was
// faster.
func (k *Keys) prepare(b *batch) {
	applied := k.state.applied.Load()
	for len(b.updates) > 0 && b.updates[0].entry.Revision <= applied {
		b.updates = b.updates[1:]
	}
}

func (k *Keys) answer(b *batch) {
	for i, p := range b.waiters {
		p.outcome = b.results[i].Outcome
		if p.outcome.Wrote && k.setBacks.mayBeLost(b) {
			p.answer(nil, errMayBeLost)
			continue
		}
		p.answer(nil, b.results[i].err)
	}
}
