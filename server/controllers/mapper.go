package controllers

import (
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	"github.com/plinth-io/plinth/server/kind"
)

// NewMapper returns a mapper that always has the current kinds.
func NewMapper(kinds *kind.Registry) meta.ResettableRESTMapper { return &mapper{kinds: kinds} }

// mapper maps kinds to resources as the registry has them when a method is called.
type mapper struct {
	kinds *kind.Registry

	mu         sync.Mutex
	generation int64 // of the registry's set that current was made from
	current    meta.RESTMapper
}

var _ meta.ResettableRESTMapper = &mapper{}

// Reset does nothing, because a mapper is never out of date.
func (m *mapper) Reset() {}

func (m *mapper) now() meta.RESTMapper {
	set := m.kinds.Set()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.current == nil || m.generation != set.Generation {
		m.current, m.generation = restmapper.NewDiscoveryRESTMapper(groupResources(set)), set.Generation
	}
	return m.current
}

func groupResources(set *kind.Set) (groups []*restmapper.APIGroupResources) {
	byName := make(map[string]*restmapper.APIGroupResources)
	for _, k := range set.Kinds {
		g := byName[k.Group]
		if g == nil {
			g = &restmapper.APIGroupResources{
				Group:              metav1.APIGroup{Name: k.Group},
				VersionedResources: make(map[string][]metav1.APIResource),
			}
			byName[k.Group] = g
			groups = append(groups, g)
		}
		for _, v := range k.Versions {
			if _, ok := g.VersionedResources[v.Name]; !ok {
				g.Group.Versions = append(g.Group.Versions, metav1.GroupVersionForDiscovery{
					GroupVersion: schema.GroupVersion{Group: k.Group, Version: v.Name}.String(), Version: v.Name,
				})
			}
			g.VersionedResources[v.Name] = append(g.VersionedResources[v.Name], apiResource(k, v.Name))
		}
	}
	for _, g := range groups {
		g.Group.PreferredVersion = g.Group.Versions[0]
	}
	return groups
}

func (m *mapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	return m.now().KindFor(r)
}

func (m *mapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	return m.now().KindsFor(r)
}

func (m *mapper) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	return m.now().ResourceFor(r)
}

func (m *mapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	return m.now().ResourcesFor(r)
}

func (m *mapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	return m.now().RESTMapping(gk, versions...)
}

func (m *mapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	return m.now().RESTMappings(gk, versions...)
}

func (m *mapper) ResourceSingularizer(resource string) (string, error) {
	return m.now().ResourceSingularizer(resource)
}
