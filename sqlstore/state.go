package sqlstore

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/tidwall/btree"
)

// entryMap is one resource's state. A copy takes constant time and shares its nodes
// with the original; whichever is written first copies the nodes on the path. Reading
// a copy that nobody writes needs no lock, whatever happens to the original.
type entryMap = btree.Map[string, *Entry]

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
	cache     *cache // of raw keys' values, else nil
	evictor   evictor
	leases    leaseKeys // of raw keys, else nil
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
	prev    *Entry // what the key held, with its value; set if values may leave memory
}

func (st *state) init(o Options, c *cache) {
	st.resources = make(map[string]*resource)
	st.window.limit = o.WindowBytes
	st.snapshots = o.Snapshots
	st.indexLimit = o.IndexBytes
	st.evictor.init(o.StateBytes)
	st.format = o.Format
	if _, raw := o.Format.(Raw); raw {
		st.cache, st.leases = c, leaseKeys{}
	}
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

// Get returns the current entry of key, nil if it is absent. It never waits for the
// database. The entry may be unreadable: see Entry.Unreadable.
func (s *Store) Get(key string) *Entry {
	s.state.mu.RLock()
	e := s.state.get(key)
	s.state.mu.RUnlock()
	return s.values.readable(e)
}

// ChangedAt returns a revision that stays the same as long as no object of resource
// changes: that of the last change, or of the last full read of the log.
func (s *Store) ChangedAt(resource string) int64 {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	if r := s.state.resources[resource]; r != nil {
		return r.last
	}
	return s.state.base
}

// Since returns the changes of resource after a revision, and the revision through which they
// are complete. It runs no SQL and does not wait: complete is false if the window does not have
// all of the changes any more, and then the caller reads Current.
func (s *Store) Since(resource string, after int64) (events []*Event, through int64, complete bool) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	start, through := s.state.base, s.state.applied.Load()
	r := s.state.resources[resource]
	if r != nil {
		start = r.start
	}
	if after < start {
		return nil, 0, false
	}
	if r != nil {
		events = slices.Clone(r.since(after))
	}
	return events, through, true
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

// apply makes rows visible together and then wakes the callers that wait for them. The
// revisions of rows increase and are above applied.
func (st *state) apply(rows []update) {
	if len(rows) == 0 {
		return
	}
	st.mu.Lock()
	for i := range rows {
		st.applyRow(&rows[i])
	}
	st.advanceAndUnlock(rows[len(rows)-1].entry.Revision)
}

func (st *state) applyRow(u *update) {
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
	st.evictor.count(r, ev.Prev, ev.left())
	st.seal(r, ev.Prev, ev.left())
	if ev.Prev != nil && ev.Prev.isAway() {
		ev.Prev = u.prev
	}
	if st.cache != nil {
		st.applyRaw(ev, u.deleted)
	}
	r.copied = nil
	r.last = e.Revision
	r.topics.mark(e.Key, "", e.Revision, &st.window)
	r.attributes.note(ev, &st.window)
	st.window.add(r, ev)
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
	if st.cache != nil {
		st.replaceRaw(loaded)
	}
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
