package sqlstore

import (
	"context"
	"fmt"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/tidwall/btree"
)

// entryMap is one resource's state. A copy takes constant time and shares its nodes
// with the original; whichever is written first copies the nodes on the path. Reading
// a copy that nobody writes needs no lock, whatever happens to the original.
type entryMap = btree.Map[string, *Entry]

// rank returns the number of keys below key. Nodes know their sizes, so that looking
// up a position is as cheap as looking up a key.
func rank(m *entryMap, key string) int {
	return sort.Search(m.Len(), func(i int) bool {
		k, _, _ := m.GetAt(i)
		return k >= key
	})
}

// state is everything that reads are served from. The tail is its only writer.
type state struct {
	applied atomic.Int64 // newest revision applied; written under mu
	floor   atomic.Int64 // highest compacted revision that is known

	unreadable, damaged atomic.Int64 // entries; written under mu

	snapshots  int // Options.Snapshots
	indexLimit int // Options.IndexBytes
	format     Format

	mu        sync.RWMutex
	resources map[string]*resource
	base      int64 // revision of the last full load; older events are only in the log
	window    window
	evictor   evictor   // of objects' values
	cache     *cache    // of raw keys' values
	leases    leaseKeys // of raw keys
	waiters   []*waiter
	closed    bool
}

// resource is the part of the state that belongs to one resource, as Format has it. It lives as long as
// the Store. All fields are guarded by state.mu.
type resource struct {
	entries entryMap
	copied  *frozen     // a copy that still equals entries, else nil
	last    int64       // nothing changed in (last, applied]
	kept    []*snapshot // newest last
	indexing
	holding
	sealing

	start      int64 // events has everything in (start, applied]
	events     queue[*Event]
	topics     topics // of all entries
	attributes attributes
}

// update is one row to apply to the state: the key's new entry, or its last one.
type update struct {
	entry   *Entry
	deleted bool
}

func (st *state) init(o Options, c *cache) {
	st.resources = make(map[string]*resource)
	st.window.limit = o.WindowBytes
	st.snapshots = o.Snapshots
	st.indexLimit = o.IndexBytes
	st.evictor.init(o.StateBytes)
	st.format = o.Format
	st.cache, st.leases = c, leaseKeys{}
}

// resource returns the resource of that name, made if it is new. mu is held.
func (st *state) resource(name string) *resource {
	r := st.resources[name]
	if r == nil {
		r = &resource{last: st.base, start: st.base}
		st.resources[name] = r
	}
	return r
}

func (st *state) get(key string) *Entry {
	r := st.resources[st.format.ResourceOf(key)]
	if r == nil {
		return nil
	}
	st.evictor.use(r)
	e, _ := r.entries.Get(key)
	return e
}

// newest returns the entry of key as the state has it.
func (st *state) newest(key string) *Entry {
	st.mu.RLock()
	defer st.mu.RUnlock()
	return st.get(key)
}

// prevs returns what the keys of updates hold now, if values may leave memory.
func (st *state) prevs(updates []update) []*Entry {
	if !st.bounded() {
		return nil
	}
	prevs := make([]*Entry, len(updates))
	st.mu.RLock()
	defer st.mu.RUnlock()
	for i := range updates {
		prevs[i] = st.get(updates[i].entry.Key)
	}
	return prevs
}

// apply makes rows visible together and then wakes the callers that wait for them. The
// revisions of rows increase and are above applied. prevs are those of rows, with their values, if values may leave memory.
func (st *state) apply(rows []update, prevs []*Entry) {
	if len(rows) == 0 {
		return
	}
	st.mu.Lock()
	for i := range rows {
		var prev *Entry
		if prevs != nil {
			prev = prevs[i]
		}
		st.applyRow(&rows[i], prev)
	}
	st.advanceAndUnlock(rows[len(rows)-1].entry.Revision)
}

func (st *state) applyRow(u *update, prev *Entry) {
	e := u.entry
	r := st.resource(st.format.ResourceOf(e.Key))
	st.evictor.use(r)
	ev := &Event{Entry: e}
	if u.deleted {
		ev.Type = Delete
		ev.Prev, _ = r.entries.Delete(e.Key)
	} else {
		ev.Prev, _ = r.entries.Set(e.Key, e)
	}
	st.count(r, ev.Prev, ev.left())
	st.seal(r, ev.Prev, ev.left())
	if ev.Prev.isAway() {
		ev.Prev = prev
	}
	r.copied = nil
	r.last = e.Revision
	r.attributes.note(ev, &st.window)
	r.topics.mark(e.Key, "", e.Revision, &st.window)
	st.window.add(r, ev)
}

// count notes that now is in the place of before in r, for what bounds the values in memory and knows the keys of
// leases; either may be nil.
func (st *state) count(r *resource, before, now *Entry) {
	st.evictor.count(r, before, now)
	st.cache.change(before, now)
	st.leases.change(before, now)
}

// recount counts the entries of all resources anew. mu is held.
func (st *state) recount() {
	st.evictor.values, st.evictor.fixed, st.evictor.away = 0, 0, 0
	st.cache.clear()
	st.leases = leaseKeys{}
	for _, r := range st.resources {
		r.values = 0
		r.entries.Scan(func(_ string, e *Entry) bool {
			st.count(r, nil, e)
			return true
		})
	}
}

// advance moves applied over revisions that have no rows.
func (st *state) advance(revision int64) {
	st.mu.Lock()
	st.advanceAndUnlock(max(revision, st.applied.Load()))
}

// advanceAndUnlock sets applied, unlocks mu, which the caller holds, and then wakes waiters
// and watchers: each of these takes mu next.
func (st *state) advanceAndUnlock(revision int64) {
	st.applied.Store(revision)
	ready := st.takeReady(revision)
	woken := st.window.takeMarked()
	st.mu.Unlock()
	for _, w := range ready {
		close(w.done)
	}
	for _, c := range woken {
		close(c)
	}
}

// replace puts a fully read state in the place of the one that is there. Events between
// the two are unknown, so windows begin anew, and watchers that are behind read the log.
func (st *state) replace(loaded map[string]*entryMap, unreadable []*Unreadable, head changelog.Head) {
	revision := head.Revision
	st.mu.Lock()
	st.base = revision
	for name := range loaded {
		st.resource(name)
	}
	st.window.clear()
	for name, r := range st.resources {
		r.entries, r.copied = entryMap{}, nil
		r.asked = nil
		r.epoch++
		if m := loaded[name]; m != nil {
			r.entries = *m
		}
		r.last, r.start, r.kept = revision, revision, nil
		r.events = queue[*Event]{}
		r.topics.markAll(revision, &st.window)
		r.attributes.reset(revision, &st.window)
	}
	st.recount()
	st.sealAll(unreadable)
	st.raise(head.Floor)
	st.advanceAndUnlock(revision)
}

func (st *state) swap(e, again *Entry) (done bool) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.resources[st.format.ResourceOf(e.Key)]
	if r == nil {
		return false
	}
	if now, _ := r.entries.Get(e.Key); now != e {
		return false
	}
	st.swapHeld(r, e, again)
	if !e.isAway() {
		r.epoch++
	}
	return true
}

// swapHeld puts again in the place of e, which has the same revision and differs in whether its value is in
// memory.
func (st *state) swapHeld(r *resource, e, again *Entry) {
	r.entries.Set(e.Key, again)
	r.attributes.swap(e, again)
	st.evictor.count(r, e, again)
	st.seal(r, e, again)
	r.copied = nil
}

// raiseFloor notes that everything below floor is compacted, here or by another
// replica. It never exceeds what is applied: reads at the applied revision always work.
func (st *state) raiseFloor(floor int64) {
	floor = min(floor, st.applied.Load())
	if st.raise(floor) {
		st.dropBelow(floor)
	}
}

func (st *state) raise(floor int64) (raised bool) {
	for old := st.floor.Load(); floor > old; old = st.floor.Load() {
		if st.floor.CompareAndSwap(old, floor) {
			return true
		}
	}
	return false
}

// dropBelow forgets kept snapshots that no revision from floor on can be read from.
func (st *state) dropBelow(floor int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for _, r := range st.resources {
		live := r.kept[:0]
		for _, k := range r.kept {
			if k.through >= floor {
				live = append(live, k)
			}
		}
		clear(r.kept[len(live):])
		r.kept = live
	}
}

// waiter is a call of Wait.
type waiter struct {
	revision int64
	done     chan struct{}
}

func (st *state) wait(ctx context.Context, revision int64) error {
	w, err := st.waiter(revision)
	if w == nil || err != nil {
		return err
	}
	select {
	case <-w.done:
		return st.reached(revision)
	case <-ctx.Done():
		st.drop(w)
		return fmt.Errorf("wait for revision %d: %w: %w", revision, ErrFuture, ctx.Err())
	}
}

// waiter returns nil if revision is applied already.
func (st *state) waiter(revision int64) (*waiter, error) {
	if st.applied.Load() >= revision {
		return nil, nil
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return nil, changelog.ErrClosed
	}
	if st.applied.Load() >= revision {
		return nil, nil
	}
	w := &waiter{revision, make(chan struct{})}
	st.waiters = append(st.waiters, w)
	return w, nil
}

func (st *state) reached(revision int64) error {
	if st.applied.Load() < revision {
		return changelog.ErrClosed
	}
	return nil
}

func (st *state) drop(w *waiter) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, x := range st.waiters {
		if x == w {
			st.waiters = append(st.waiters[:i], st.waiters[i+1:]...)
			return
		}
	}
}

// takeReady removes and returns the waiters that revision is enough for. mu is held.
func (st *state) takeReady(revision int64) (ready []*waiter) {
	if len(st.waiters) == 0 {
		return nil
	}
	rest := st.waiters[:0]
	for _, w := range st.waiters {
		if w.revision <= revision {
			ready = append(ready, w)
		} else {
			rest = append(rest, w)
		}
	}
	clear(st.waiters[len(rest):])
	st.waiters = rest
	return ready
}

// close ends watchers and waiters. Reads of the state go on.
func (st *state) close() {
	st.mu.Lock()
	st.closed = true
	for _, r := range st.resources {
		r.topics.markAll(st.applied.Load(), &st.window)
		r.attributes.markAll(st.applied.Load(), &st.window)
	}
	for _, w := range st.waiters {
		close(w.done)
	}
	st.waiters = nil
	st.advanceAndUnlock(st.applied.Load())
}
