package sqlstore

import (
	"slices"
	"sync/atomic"
)

// snapshot is a resource's state, the same at every revision in [from, through].
type snapshot struct {
	*frozen
	from, through int64
}

// frozen is a copy of a resource's entries, and of their indexes. Readers who build one more add it.
type frozen struct {
	entries *entryMap
	indexes atomic.Pointer[[]*index]
}

// index returns the copy of an attribute's index, nil if there is none.
func (f *frozen) index(attribute string) *index {
	if all := f.indexes.Load(); all != nil {
		for _, x := range *all {
			if x.attribute == attribute {
				return x
			}
		}
	}
	return nil
}

// offer adds a copy of an index unless there is one for its attribute.
func (f *frozen) offer(x *index) {
	for f.index(x.attribute) == nil {
		old := f.indexes.Load()
		all := []*index{x}
		if old != nil {
			all = append(slices.Clip(*old), x)
		}
		if f.indexes.CompareAndSwap(old, &all) {
			return
		}
	}
}

// freeze returns a copy of r's present state.
func (r *resource) freeze() *frozen {
	f := &frozen{entries: r.entries.Copy()}
	var all []*index
	for _, a := range r.attributes.known {
		if a.index != nil {
			all = append(all, a.index.copy())
		}
	}
	if all != nil {
		f.indexes.Store(&all)
	}
	return f
}

func (n *snapshot) covers(revision int64) bool {
	return n.from <= revision && revision <= n.through
}

func (st *state) unchangedSince(name string, revision int64) bool {
	st.mu.RLock()
	defer st.mu.RUnlock()
	r := st.resources[name]
	return r == nil || r.last <= revision
}

func (st *state) keptAt(name string, revision int64) *snapshot {
	st.mu.RLock()
	defer st.mu.RUnlock()
	if r := st.resources[name]; r != nil {
		for _, k := range r.kept {
			if k.covers(revision) {
				return k
			}
		}
	}
	return nil
}

func (st *state) keepView(v *stateView) {
	st.mu.Lock()
	defer st.mu.Unlock()
	r := st.resource(v.resource)
	for i, k := range r.kept {
		if k.frozen == v.frozen {
			r.kept[i] = widest(k, &v.snapshot)
			return
		}
	}
	if len(r.kept) == st.snapshots {
		r.kept = append(r.kept[:0], r.kept[1:]...)
	}
	r.kept = append(r.kept, &v.snapshot)
}

func widest(a, b *snapshot) *snapshot {
	if b.through > a.through {
		return b
	}
	return a
}

var noEntries = &frozen{entries: &entryMap{}}

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
		r.copied = r.freeze()
	}
	snap, _ = st.cached(name)
	return snap
}

// cached returns the current state without copying, if a copy is at hand: every copy
// makes the next write copy the nodes on its path.
func (st *state) cached(name string) (snapshot, bool) {
	r := st.resources[name]
	if r == nil {
		return snapshot{noEntries, st.base, st.applied.Load()}, true
	}
	st.evictor.use(r)
	return snapshot{r.copied, r.last, st.applied.Load()}, r.copied != nil
}

func (n snapshot) at(v *values, resource string) View {
	return &stateView{snapshot: n, values: v, resource: resource, revision: n.through}
}
