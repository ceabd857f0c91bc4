package discovery

import (
	"fmt"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/endpoints/discovery"

	"github.com/plinth-io/plinth/server/aggregator"
	"github.com/plinth-io/plinth/server/kind"
)

// documents are all answers for one generation of the registry and one state of the extension
// servers.
type documents struct {
	set        *kind.Set
	found      *aggregator.Discovered
	byPath     map[string]runtime.Object
	elsewhere  []string                                       // paths that extension servers answer
	aggregated map[string]*apidiscovery.APIGroupDiscoveryList // for /api and /apis

	mu    sync.Mutex
	bytes map[document][]byte // guarded by mu; a few per path
	etags map[string]string   // by path; guarded by mu
}

// document names one encoding of one path.
type document struct {
	path       string
	aggregated bool
	encoder    runtime.Identifier
}

func newDocuments(set *kind.Set, found *aggregator.Discovered) *documents {
	d := &documents{
		set:        set,
		found:      found,
		byPath:     map[string]runtime.Object{},
		aggregated: map[string]*apidiscovery.APIGroupDiscoveryList{"/api": newList(), "/apis": newList()},
		bytes:      map[document][]byte{},
		etags:      map[string]string{},
	}
	all := &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, g := range withExtensions(groupsOf(set), found) {
		d.add(g)
		if g.name != "" {
			all.Groups = append(all.Groups, g.summary())
		}
	}
	d.byPath["/apis"] = all
	return d
}

// add makes the documents of one group.
func (d *documents) add(g *group) {
	root, base := "/apis", "/apis/"+g.name
	if g.name == "" {
		root, base = "/api", "/api"
	} else {
		summary := g.summary()
		summary.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		d.byPath[base] = &summary
	}
	item := apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
	for _, v := range g.versions {
		if extension, ok := g.extensions[v]; ok {
			d.elsewhere = append(d.elsewhere, base+"/"+v)
			item.Versions = append(item.Versions, extension.Discovery)
			continue
		}
		d.byPath[base+"/"+v] = g.resources(v)
		item.Versions = append(item.Versions, g.aggregate(v))
	}
	d.aggregated[root].Items = append(d.aggregated[root].Items, item)
}

// list returns all paths that are served, sorted.
func (d *documents) list(others []string) []string {
	paths := append([]string{"/api"}, others...)
	paths = append(paths, d.elsewhere...)
	for path := range d.byPath {
		paths = append(paths, path)
	}
	sort.Strings(paths)
	return slices.Compact(paths)
}

// serve answers with the document of path, which exists.
func (d *documents) serve(w http.ResponseWriter, path string, info runtime.SerializerInfo) error {
	doc := document{path: path, encoder: info.Serializer.Identifier()}
	body, err := d.encode(doc, info, d.byPath[path])
	if err != nil {
		return err
	}
	return respond(w, info.MediaType, body)
}

// encode returns the bytes of doc, made of obj the first time.
func (d *documents) encode(doc document, info runtime.SerializerInfo, obj runtime.Object) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if b, ok := d.bytes[doc]; ok {
		return b, nil
	}
	b, err := runtime.Encode(info.Serializer, obj)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", doc.path, err)
	}
	d.bytes[doc] = b
	return b, nil
}

// group is one API group of a Set.
type group struct {
	name     string
	versions []string // most preferred first
	kinds    []*kind.Kind

	priority   int                           // of a built-in group
	extensions map[string]aggregator.Version // those that extension servers serve
}

func groupsOf(set *kind.Set) []*group {
	var groups []*group
	for _, k := range set.Kinds {
		if n := len(groups); n == 0 || groups[n-1].name != k.Group {
			groups = append(groups, &group{name: k.Group, priority: set.Priority(k.Group)})
		}
		g := groups[len(groups)-1]
		g.kinds = append(g.kinds, k)
		for _, v := range k.Versions {
			if !slices.Contains(g.versions, v.Name) {
				g.versions = append(g.versions, v.Name)
			}
		}
	}
	for _, g := range groups {
		slices.SortFunc(g.versions, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
	}
	return groups
}

func (g *group) summary() metav1.APIGroup {
	s := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		s.Versions = append(s.Versions, metav1.GroupVersionForDiscovery{
			GroupVersion: schema.GroupVersion{Group: g.name, Version: v}.String(),
			Version:      v,
		})
	}
	s.PreferredVersion = s.Versions[0]
	return s
}

// resources is the classic document of one version.
func (g *group) resources(v string) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: schema.GroupVersion{Group: g.name, Version: v}.String(),
		APIResources: []metav1.APIResource{},
	}
	if g.name == "" {
		list.APIVersion = "" // as upstream has it, for clients of the first releases
	}
	for _, k := range g.kinds {
		if k.Version(v) == nil {
			continue
		}
		list.APIResources = append(list.APIResources, resource(k))
		for _, s := range subresources(k) {
			part := metav1.APIResource{
				Name: k.Resource + "/" + s.Name, Namespaced: k.Namespaced, Verbs: s.Verbs, Kind: bodyKind(k, s),
			}
			if foreign(k, s) {
				part.Group, part.Version = s.GVK.Group, s.GVK.Version
			}
			list.APIResources = append(list.APIResources, part)
		}
	}
	return list
}

func resource(k *kind.Kind) metav1.APIResource {
	r := metav1.APIResource{
		Name: k.Resource, SingularName: k.Singular, Namespaced: k.Namespaced, Kind: k.Kind,
		Verbs: verbs(k), ShortNames: k.ShortNames, Categories: k.Categories,
	}
	if k.Virtual == nil && k.Observed == nil {
		r.StorageVersionHash = discovery.StorageVersionHash(k.Stored.Group, k.Stored.Version, k.Kind)
	}
	return r
}

// verbs leaves out the verbs that change objects while their definition is being deleted.
// Only create is refused then, but as in upstream the others are not listed either.
func verbs(k *kind.Kind) []string {
	if k.Custom == nil || !k.Custom.Terminating {
		return k.Verbs
	}
	return slices.DeleteFunc(slices.Clone(k.Verbs), func(verb string) bool {
		return verb == "create" || verb == "patch" || verb == "update"
	})
}

// foreign tells whether the body of a subresource is of another group than the resource: only
// then the document names the group.
func foreign(k *kind.Kind, s *kind.Subresource) bool {
	return !s.GVK.Empty() && s.GVK.Group != k.Group
}

func bodyKind(k *kind.Kind, s *kind.Subresource) string {
	if s.GVK.Kind != "" {
		return s.GVK.Kind
	}
	return k.Kind
}

func subresources(k *kind.Kind) []*kind.Subresource {
	list := make([]*kind.Subresource, 0, len(k.Subresources))
	for _, s := range k.Subresources {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *kind.Subresource) int { return strings.Compare(a.Name, b.Name) })
	if k.Custom != nil {
		slices.Reverse(list) // status comes before scale there
	}
	return list
}
