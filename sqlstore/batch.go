package sqlstore

import (
	"slices"
	"sync"
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
	updates  []update // that make it visible

	// Of transactions, which have no changes before they have run.
	results []result        // of waiters
	found   []changelog.Row // what other processes had written after known
	known   int64
}

// face is what objects and raw keys do each in their own way. Code that both share calls it, and never asks which of them
// it is inside; what differs in numbers only is in ids and limits. useObjects and useKeys set all of it, when a Store is made.
type face interface {
	// write runs b's transaction. The committer calls it.
	write(b *batch) error
	// prepare sets b.updates, what the state lacks of b, which was written, and what b's callers are to be told. The tail
	// calls it, and calls it again if the state is read anew before it has b.
	prepare(b *batch)
	// answer tells b's callers. The tail calls it after prepare.
	answer(b *batch)
	// compactTo deletes what a floor at a revision makes superfluous. The compactor calls it.
	compactTo(revision int64) error
}

// pipe takes batches from the committer to the tail, and back.
type pipe struct {
	appended chan *batch // closed by the committer at its end
	free     chan *batch // batches to use again
}

func newPipe() pipe {
	// It needs two batches: one in its transaction, one being applied.
	p := pipe{appended: make(chan *batch, 1), free: make(chan *batch, 2)}
	for range cap(p.free) {
		p.free <- &batch{keys: make(map[string]struct{})}
	}
	return p
}

// inFlight says that a batch is in its transaction or on its way to the tail.
func (p *pipe) inFlight() bool { return len(p.free) < cap(p.free) }

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
	clear(b.updates)
	*b = batch{changes: b.changes[:0], waiters: b.waiters[:0], keys: b.keys, results: b.results[:0], updates: b.updates[:0]}
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

// leases returns the ids of all leases that the transactions name.
func (b *batch) leases() (ids []int64) {
	for _, p := range b.waiters {
		ids = append(ids, p.transaction.Leases...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// pending is one change, or one transaction on raw keys, whose caller waits.
type pending struct {
	change Change
	by     time.Time // when its transaction is to begin at the latest; zero: at once

	transaction *Transaction
	pinned      map[int64][]byte // values that it needs
	outcome     Outcome

	taken bool          // guarded by committer.mu
	done  chan struct{} // has a token when entry and err are set
	entry *Entry
	err   error
}

var pendings = sync.Pool{New: func() any { return &pending{done: make(chan struct{}, 1)} }}

func newPending(c Change) *pending {
	p := pendings.Get().(*pending)
	p.change = c
	return p
}

// result takes the outcome out of p and gives p back for use by another commit. A
// pending that is abandoned is not given back, since it will still be answered.
func (p *pending) result() (*Entry, error) {
	entry, err := p.entry, p.err
	*p = pending{done: p.done}
	pendings.Put(p)
	return entry, err
}

func (p *pending) answer(entry *Entry, err error) {
	p.entry, p.err = entry, err
	p.done <- struct{}{}
}
