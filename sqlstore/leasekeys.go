package sqlstore

import (
	"maps"
	"slices"
)

// leaseKeys are the raw keys that are attached to each lease. It belongs to state and is guarded
// by its mutex.
type leaseKeys map[int64]map[string]struct{}

func (l leaseKeys) attach(e *Entry) {
	if e.Lease() == 0 {
		return
	}
	if l[e.Lease()] == nil {
		l[e.Lease()] = map[string]struct{}{}
	}
	l[e.Lease()][e.Key] = struct{}{}
}

func (l leaseKeys) detach(e *Entry) {
	keys := l[e.Lease()]
	if delete(keys, e.Key); len(keys) == 0 {
		delete(l, e.Lease())
	}
}

// replaceRaw notes the entries of a full read.
func (st *state) replaceRaw(loaded map[string]*entryMap) {
	st.cache.clear()
	st.leases = leaseKeys{}
	for _, entries := range loaded {
		entries.Scan(func(_ string, e *Entry) bool {
			st.leases.attach(e)
			st.cache.add(e)
			return true
		})
	}
}

// applyRaw notes what a change means for leases and for the values in memory. mu is held.
func (st *state) applyRaw(ev *Event, deleted bool) {
	if ev.Prev != nil {
		st.cache.drop(ev.Prev)
		st.leases.detach(ev.Prev)
	}
	if !deleted {
		st.leases.attach(ev.Entry)
		st.cache.add(ev.Entry)
	}
}

// Attached returns the keys that are attached to a lease now, in order.
func (k *Keys) Attached(lease int64) []string {
	k.state.mu.RLock()
	keys := slices.Collect(maps.Keys(k.state.leases[lease]))
	k.state.mu.RUnlock()
	slices.Sort(keys)
	return keys
}
