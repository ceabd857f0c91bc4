package kind

import (
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Registry holds the Kinds that are served now. Readers see an immutable Set. Kinds can be
// added and removed while requests run.
type Registry struct {
	mu      sync.Mutex // writers of set
	set     atomic.Pointer[Set]
	changed chan struct{} // closed when set is replaced; guarded by mu
}

// Set is the content of a Registry at one moment.
type Set struct {
	Generation int64 // grows with every change
	// Kinds by preference of their groups, then by resource; without the broken ones.
	Kinds []*Kind

	broken     []*Kind // see CustomResource.Broken
	byResource map[schema.GroupVersionResource]*Kind
	byStored   map[schema.GroupResource][]*Kind
	groups     map[string]bool
	priority   map[string]int
}

// NewRegistry returns an empty registry. Groups not named in priority come last, in
// alphabetical order; higher comes first (upstream: APIService groupPriorityMinimum).
func NewRegistry(priority map[string]int) *Registry {
	r := &Registry{changed: make(chan struct{})}
	r.set.Store(newSet(1, nil, priority))
	return r
}

// newSet takes kinds over.
func newSet(generation int64, kinds []*Kind, priority map[string]int) *Set {
	s := &Set{
		Generation: generation,
		Kinds:      kinds[:0],
		byResource: make(map[schema.GroupVersionResource]*Kind, len(kinds)),
		byStored:   make(map[schema.GroupResource][]*Kind, len(kinds)),
		groups:     map[string]bool{},
		priority:   priority,
	}
	sort.SliceStable(kinds, func(i, j int) bool { return s.less(kinds[i], kinds[j]) })
	for _, k := range kinds {
		for _, v := range k.Versions {
			s.byResource[schema.GroupVersionResource{Group: k.Group, Version: v.Name, Resource: k.Resource}] = k
		}
		if k.Custom != nil && k.Custom.Broken {
			s.broken = append(s.broken, k)
			continue
		}
		s.Kinds = append(s.Kinds, k)
		if k.Custom == nil {
			s.groups[k.Group] = true
		}
		stored := schema.GroupResource{Group: k.Stored.Group, Resource: k.Stored.Resource}
		s.byStored[stored] = append(s.byStored[stored], k)
	}
	return s
}

func (s *Set) less(a, b *Kind) bool {
	if a.Group != b.Group {
		if pa, pb := s.priority[a.Group], s.priority[b.Group]; pa != pb {
			return pa > pb
		}
		return a.Group < b.Group
	}
	return a.Resource < b.Resource
}

// Lookup returns the Kind of a path's group, version and resource, nil if none is served.
func (s *Set) Lookup(group, version, resource string) *Kind {
	return s.byResource[schema.GroupVersionResource{Group: group, Version: version, Resource: resource}]
}

// Priority is the group's priority given to NewRegistry, 0 if it has none.
func (s *Set) Priority(group string) int { return s.priority[group] }

// SameObjects returns the Kinds that serve the same objects as k, with k itself: the other
// versions of a custom resource, and the other group of events.
func (s *Set) SameObjects(k *Kind) []*Kind {
	return s.byStored[schema.GroupResource{Group: k.Stored.Group, Resource: k.Stored.Resource}]
}

// HasGroup reports whether a group is served and has built-in resources.
func (s *Set) HasGroup(group string) bool { return s.groups[group] }

// Set returns what is served now.
func (r *Registry) Set() *Set { return r.set.Load() }

// Lookup is Set().Lookup.
func (r *Registry) Lookup(group, version, resource string) *Kind {
	return r.set.Load().Lookup(group, version, resource)
}

// Changed returns a channel that is closed at the next change.
func (r *Registry) Changed() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.changed
}

// Replace removes the Kinds in drop and adds those in add, as one change.
func (r *Registry) Replace(drop []*Kind, add []*Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.set.Load()
	kinds := make([]*Kind, 0, len(old.Kinds)+len(old.broken)+len(add))
	for _, before := range [][]*Kind{old.Kinds, old.broken} {
		for _, k := range before {
			if !slices.Contains(drop, k) {
				kinds = append(kinds, k)
			}
		}
	}
	kinds = append(kinds, add...)
	r.set.Store(newSet(old.Generation+1, kinds, old.priority))
	close(r.changed)
	r.changed = make(chan struct{})
}
