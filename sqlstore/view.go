package sqlstore

import (
	"context"
	"sort"
)

// snapshot is a resource's state, the same at every revision in [from, through].
type snapshot struct {
	entries       *entryMap
	from, through int64
}

// Current returns the current state of resource as a constant-time copy. Its revision
// is the newest of all resources that the Store has applied.
func (s *Store) Current(resource string) View {
	return s.state.current(resource).at(s, resource)
}

var noEntries entryMap

func (st *state) current(name string) snapshot {
	st.mu.RLock()
	snap, ok := st.cached(name)
	st.mu.RUnlock()
	if ok {
		return snap
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.resource(name)
	if r.copied == nil {
		r.copied = r.entries.Copy()
	}
	snap, _ = st.cached(name)
	return snap
}

// cached returns the current state without copying, if a copy is at hand: every copy
// makes the next write copy the nodes on its path.
func (st *state) cached(name string) (snapshot, bool) {
	r := st.resources[name]
	if r == nil {
		return snapshot{&noEntries, st.base, st.applied.Load()}, true
	}
	return snapshot{r.copied, r.last, st.applied.Load()}, r.copied != nil
}

func (n snapshot) at(s *Store, resource string) View {
	return &stateView{snapshot: n, state: &s.state, resource: resource, revision: n.through}
}

// stateView is a View in memory.
type stateView struct {
	snapshot
	state    *state
	resource string
	revision int64
}

func (v *stateView) Revision() int64 { return v.revision }

func (v *stateView) Scan(ctx context.Context, from, to string, f func(*Entry) bool) error {
	v.entries.Ascend(from, func(key string, e *Entry) bool {
		return key < to && f(e)
	})
	return nil
}

func (v *stateView) Count(ctx context.Context, from, to string) (int64, error) {
	return int64(rank(v.entries, to) - rank(v.entries, from)), nil
}

// rank returns the number of keys below key. Nodes know their sizes, so that looking
// up a position is as cheap as looking up a key.
func rank(m *entryMap, key string) int {
	return sort.Search(m.Len(), func(i int) bool {
		k, _, _ := m.GetAt(i)
		return k >= key
	})
}

func (v *stateView) Get(ctx context.Context, key string) (*Entry, error) {
	e, _ := v.entries.Get(key)
	return e, nil
}
