package control

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	"github.com/plinth-io/plinth/server/kind"
)

// preferred lists every resource of set in its preferred version, as a discovery client's
// ServerPreferredResources does.
func preferred(set *kind.Set, want func(*kind.Kind) bool) []*metav1.APIResourceList {
	byGroupVersion := make(map[schema.GroupVersion]*metav1.APIResourceList)
	var lists []*metav1.APIResourceList
	for _, k := range set.Kinds {
		if !want(k) {
			continue
		}
		gv := schema.GroupVersion{Group: k.Group, Version: k.Versions[0].Name}
		list := byGroupVersion[gv]
		if list == nil {
			list = &metav1.APIResourceList{GroupVersion: gv.String()}
			byGroupVersion[gv] = list
			lists = append(lists, list)
		}
		list.APIResources = append(list.APIResources, apiResource(k, gv.Version))
	}
	return lists
}

func apiResource(k *kind.Kind, version string) metav1.APIResource {
	return metav1.APIResource{
		Name: k.Resource, SingularName: k.Singular, Kind: k.Kind, Namespaced: k.Namespaced,
		Group: k.Group, Version: version, Verbs: k.Verbs,
	}
}

func namespaced(k *kind.Kind) bool { return k.Namespaced }

// mapper maps kinds to resources as the registry has them at the moment of the call.
type mapper struct {
	kinds *kind.Registry

	mu         sync.Mutex
	generation int64 // of the registry's set that current was made of
	current    meta.RESTMapper
}

var _ meta.ResettableRESTMapper = &mapper{}

// Reset has nothing to do: a mapper is never out of date.
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

// lookAgain bounds how long discoveryOnChange waits, for a sync that failed the last time.
const lookAgain = 30 * time.Second

// discoveryOnChange is the discovery client of a garbage collector, which asks it again
// and again: the answer waits until there is something new.
type discoveryOnChange struct {
	discovery.ServerResourcesInterface // not used by the garbage collector but for the one below

	ctx     context.Context
	kinds   *kind.Registry
	changed <-chan struct{} // of what was answered last
}

// ServerPreferredResources is called by one goroutine.
func (d *discoveryOnChange) ServerPreferredResources() ([]*metav1.APIResourceList, error) {
	if d.changed != nil {
		timer := time.NewTimer(lookAgain)
		defer timer.Stop()
		select {
		case <-d.changed:
		case <-timer.C:
		case <-d.ctx.Done():
			return nil, d.ctx.Err()
		}
	}
	d.changed = d.kinds.Changed() // before the set, so that no change falls between
	return preferred(d.kinds.Set(), func(*kind.Kind) bool { return true }), nil
}
