package sqlstore

import (
	"slices"
	"time"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// batch is what one transaction appends. It belongs to the committer until it is sent
// to the tail.
type batch struct {
	changes  []changelog.Change
	waiters  []*pending // of changes
	keys     map[string]struct{}
	bytes    int
	appended changelog.Appended

	// Of transactions, which have no changes before they have run.
	results []result        // of waiters
	updates []update        // that they have made
	found   []changelog.Row // what other processes had written after known
	known   int64
}

type result struct {
	Outcome
	err error
}

func (p *pending) bytes() int {
	if p.transaction != nil {
		return p.transaction.Bytes
	}
	return len(p.change.Value)
}

// take moves what fits from the queue to b, if a batch is due. A second change of a key waits for
// the next batch, and so do those behind it for the same key.
func (c *committer) take(b *batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, due := c.due(time.Now()); !due {
		return
	}
	rest := c.queue[:0]
	for i, p := range c.queue {
		if i == 4*c.maxCount || !b.hasRoom(c, p) {
			rest = append(rest, c.queue[i:]...)
			break
		}
		if !b.add(p) {
			rest = append(rest, p)
		}
	}
	clear(c.queue[len(rest):])
	c.queue = rest
}

func (b *batch) hasRoom(c *committer, p *pending) bool {
	n := len(b.waiters)
	return n == 0 || n < c.maxCount && b.bytes+p.bytes() <= c.maxBytes
}

func (b *batch) add(p *pending) bool {
	if p.transaction != nil {
		b.waiters = append(b.waiters, p)
		b.bytes += p.bytes()
		p.taken = true
		return true
	}
	if _, ok := b.keys[p.change.Key]; ok {
		return false
	}
	b.keys[p.change.Key] = struct{}{}
	b.changes = append(b.changes, p.change.logged())
	b.waiters = append(b.waiters, p)
	b.bytes += len(p.change.Value) + len(p.change.Key)
	p.taken = true
	return true
}

func (b *batch) reset() {
	clear(b.changes)
	clear(b.waiters)
	clear(b.keys)
	clear(b.results)
	*b = batch{changes: b.changes[:0], waiters: b.waiters[:0], keys: b.keys, results: b.results[:0]}
}

// alone returns a batch with b's i-th change, or transaction, only.
func (b *batch) alone(i int) *batch {
	one := &batch{waiters: []*pending{b.waiters[i]}}
	if len(b.changes) > 0 {
		one.changes = []changelog.Change{b.changes[i]}
	}
	return one
}

func (b *batch) fail(err error) {
	for _, p := range b.waiters {
		p.answer(nil, err)
	}
}

// entry makes the entry of b's i-th change.
func (s *Store) entry(b *batch, i int) *Entry {
	c, r := &b.waiters[i].change, &b.appended.Results[i]
	return &Entry{
		Key:            c.Key,
		Revision:       r.Revision,
		CreateRevision: r.CreateRevision,
		At:             b.appended.At,
		Value:          s.o.Format.Show(c.Value, r.Revision),
		form:           c.form,
	}
}

// leases returns the ids of all leases that the transactions name.
func (b *batch) leases() (ids []int64) {
	for _, p := range b.waiters {
		ids = append(ids, p.transaction.Leases...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
