package sqlstore

import (
	"sync/atomic"

	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// The evictor keeps what the state of objects takes in memory within Options.StateBytes: values leave memory,
// those of the least recently used resources first, and keys, revisions and indexes stay.

const (
	// entryBytes is what an entry takes beside its key and value: itself, and its place in the ordered map.
	entryBytes = 160
	// evictWalk is how many entries the evictor looks at while others wait.
	evictWalk = 512
)

// evictor is the part of the state that bounds it. Guarded by state.mu, but for what says otherwise.
type evictor struct {
	limit  int           // Options.StateBytes; 0: there is no bound. Never changes
	room   int           // what there is room for now, at most limit
	wake   chan struct{} // has a token when there may be too much; may be used without the lock
	round  atomic.Int64  // of evictions; tells which resources were used before the last ones
	values int           // bytes of all values in memory
	fixed  int           // bytes that entries take without values
	away   int           // entries without values
	lent   atomic.Int64  // bytes that readers have in memory beside the state; may be used without the lock
}

// holding is the part of a resource that the evictor needs. Guarded by state.mu, but for used.
type holding struct {
	values int          // bytes of the values in memory
	hand   string       // key at which the next eviction goes on
	used   atomic.Int64 // round of the last use
}

func (v *evictor) init(limit int) {
	v.limit, v.room = limit, limit
	v.wake = make(chan struct{}, 1)
}

// use notes that somebody reads or writes r.
func (v *evictor) use(r *resource) {
	if v.limit == 0 {
		return
	}
	if now := v.round.Load(); r.used.Load() != now {
		r.used.Store(now)
	}
}

// over says that values have to leave memory.
func (v *evictor) over() bool { return v.values > 0 && v.used() > v.room }

// used is what counts against the bound.
func (v *evictor) used() int { return v.values + v.fixed + int(v.lent.Load()) }

// enough says that enough have left, and that a scan may keep what it has read. It asks for less than over permits,
// so that eviction has a batch each time.
func (v *evictor) enough() bool {
	return v.values == 0 || v.used() <= v.room-v.room/8
}

// count notes that now is in the place of before in r; either may be nil.
func (v *evictor) count(r *resource, before, now *Entry) {
	if v.limit == 0 {
		return
	}
	v.add(r, before, -1)
	v.add(r, now, 1)
	v.check()
}

// check wakes the evictor if there is too much.
func (v *evictor) check() {
	if v.limit > 0 && v.over() {
		put(v.wake)
	}
}

// add counts an entry n times; nil does not count.
func (v *evictor) add(r *resource, e *Entry, n int) {
	if e == nil {
		return
	}
	v.fixed += n * (entryBytes + len(e.Key))
	v.values += n * len(e.Value)
	r.values += n * len(e.Value)
	if e.isAway() {
		v.away += n
	}
}

// bounded says that values may leave memory.
func (st *state) bounded() bool { return st.evictor.limit > 0 }

func (st *state) setRoom(bytes int) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.evictor.room = min(bytes, st.evictor.limit)
	st.evictor.check()
}

// runEvictor takes values out of memory when there may be too much, until stop is closed.
func (st *state) runEvictor(stop <-chan struct{}) {
	for {
		select {
		case <-st.evictor.wake:
		case <-stop:
			return
		}
		for st.evictSome() {
		}
		st.evictor.round.Add(1)
	}
}

// evictSome takes some values out of memory; false if there are few enough.
func (st *state) evictSome() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.evictor.enough() {
		return false
	}
	r := st.leastUsed()
	if r == nil {
		return false
	}
	r.kept = nil // these hold what is to leave; later pages of a list are read from the log
	for _, e := range r.nextHeld() {
		st.swapHeld(r, e, e.withoutValue())
	}
	return true
}

// leastUsed returns the resource whose values leave memory first; of several the one that has the most. An
// index that is being built holds the entries that it was given.
func (st *state) leastUsed() (least *resource) {
	for _, r := range st.resources {
		if r.values == 0 || len(r.building) > 0 {
			continue
		}
		if least == nil || r.used.Load() < least.used.Load() || r.used.Load() == least.used.Load() && r.values > least.values {
			least = r
		}
	}
	return least
}

// nextHeld returns entries with a value from those that come next, and moves the hand on.
func (r *resource) nextHeld() (held []*Entry) {
	n, last := 0, ""
	r.entries.Ascend(r.hand, func(key string, e *Entry) bool {
		if e.Value != nil && e.Unreadable() == nil {
			held = append(held, e)
		}
		n, last = n+1, key
		return n < evictWalk
	})
	if r.hand = changelog.After(last); n < evictWalk {
		r.hand = ""
	}
	return held
}

// keepFetched lets values that a scan has read stay in memory while there is room for them, and notes which are
// damaged; it returns these.
func (st *state) keepFetched(away, there []*Entry) (damaged []*Entry) {
	st.mu.Lock()
	defer st.mu.Unlock()
	for i, e := range away {
		bad := there[i].isDamaged()
		if !e.isAway() || !bad && (there[i].isSealed() || !st.evictor.enough()) {
			continue
		}
		r := st.resources[st.format.ResourceOf(e.Key)]
		if r == nil {
			continue // all of it was deleted since
		}
		if now, _ := r.entries.Get(e.Key); now == e {
			st.swapHeld(r, e, there[i])
			if bad {
				damaged = append(damaged, there[i])
			}
		}
	}
	return damaged
}
