package past

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// Kind is a type of objects as the server serves it.
type Kind struct {
	Resource   schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// Name is the name of the kind in the history: deployments.apps.
func (k Kind) Name() string { return k.Resource.GroupResource().String() }

// Kinds knows which types the server serves. It caches what the server says; its mutexes are those of client-go.
type Kinds struct {
	server    *server
	discovery discovery.CachedDiscoveryInterface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
}

// FindPastKinds is FindPastKind for several types, separated by commas, of which one may stand for others
// as all does for kubectl.
func (h *History) FindPastKinds(ctx context.Context, text string) (kinds []Kind, err error) {
	for _, one := range strings.Split(text, ",") {
		names := []string{one}
		if members := h.kinds.category(one); len(members) > 0 {
			names = members
		}
		for _, name := range names {
			kind, err := h.FindPastKind(ctx, name)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(kinds, kind) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds, nil
}

// category returns the names of the types that a word stands for, none of a type.
func (k *Kinds) category(text string) (names []string) {
	members, _ := restmapper.NewDiscoveryCategoryExpander(k.discovery).Expand(text)
	for _, member := range members {
		names = append(names, member.String())
	}
	return names
}

// Find looks up a type as kubectl does: deployments, deployment, deploy, deployments.apps,
// deployments.v1.apps.
func (k *Kinds) Find(text string) (Kind, error) {
	mapper := restmapper.NewShortcutExpander(k.mapper, k.discovery, nil)
	full, short := schema.ParseResourceArg(strings.ToLower(text))
	var gvk schema.GroupVersionKind
	var err error = &meta.NoResourceMatchError{}
	if full != nil {
		gvk, err = mapper.KindFor(*full)
	}
	if err != nil {
		gvk, err = mapper.KindFor(short.WithVersion(""))
	}
	var several *meta.AmbiguousResourceError
	if errors.As(err, &several) && len(several.MatchingKinds) > 0 {
		gvk, err = several.MatchingKinds[0], nil
	}
	if err != nil {
		return Kind{}, k.noSuchKind(text, err)
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return Kind{}, k.noSuchKind(text, err)
	}
	return Kind{mapping.Resource, gvk.Kind, mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}

// FindPastKind is Find for a type that may be gone. It has to be written in full then, plural and
// group; its last definition, if that is kept, says whether its objects were in namespaces. If the
// definition is there, what the client knows of the types is older than it, and is read anew.
func (h *History) FindPastKind(ctx context.Context, text string) (Kind, error) {
	kind, err := h.kinds.Find(text)
	var unknown *UnknownKindError
	if !errors.As(err, &unknown) || !strings.Contains(text, ".") {
		return kind, err
	}
	kind = pastKind(text)
	definitions, err := h.kinds.Find("customresourcedefinitions.apiextensions.k8s.io")
	if err != nil {
		return kind, nil
	}
	v, err := first(h.Versions(ctx, Query{Limit: 1}.ToObject(definitions.In("", text))))
	if err != nil || v == nil {
		return kind, nil
	}
	if v.Action != historyv1.Deleted {
		h.kinds.forget()
		if served, err := h.kinds.Find(text); err == nil {
			return served, nil
		}
	}
	if definition, err := Object(v); err == nil {
		scope, _, _ := unstructured.NestedString(definition.Object, "spec", "scope")
		kind.Kind, _, _ = unstructured.NestedString(definition.Object, "spec", "names", "kind")
		kind.Namespaced = scope != "Cluster"
	}
	return kind, nil
}

// pastKind returns a kind of which nothing is known but its name in the history.
func pastKind(name string) Kind {
	return Kind{Resource: schema.ParseGroupResource(name).WithVersion("")}
}

// forget makes the client look up types anew.
func (k *Kinds) forget() { k.mapper.Reset() }

// hasStatus tells whether objects of the kind have a status that only its own subresource writes.
func (k *Kinds) hasStatus(kind Kind) bool {
	list, err := k.discovery.ServerResourcesForGroupVersion(kind.Resource.GroupVersion().String())
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == kind.Resource.Resource+"/status" })
}

// Served returns the names of all types whose objects can be listed: deployments.apps, pods.
func (k *Kinds) Served() (names []string, err error) {
	all, err := k.All(false)
	for _, kind := range all {
		names = append(names, kind.Name())
	}
	return names, err
}

// Names returns the names of the objects of a type that are there now.
func (k *Kinds) Names(ctx context.Context, kindText, namespace string) (names []string, err error) {
	kind, err := k.Find(kindText)
	if err != nil {
		return nil, err
	}
	t := kind.In(namespace, "")
	list, err := k.server.objects.Resource(kind.Resource).Namespace(t.Namespace).List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil, k.server.unreachable(err)
	}
	for _, object := range list.Items {
		names = append(names, object.GetName())
	}
	return names, nil
}

// settle bounds the time in which a kind is served whose definition was just created.
const settle = 10 * time.Second

// await is Find for a type whose definition may be a moment old.
func (k *Kinds) await(ctx context.Context, text string) (Kind, error) {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for {
		kind, err := k.Find(text)
		var unknown *UnknownKindError
		if err == nil || !errors.As(err, &unknown) {
			return kind, err
		}
		if sleep.For(ctx, 100*time.Millisecond) != nil {
			return kind, err
		}
		k.forget()
	}
}

// hasHistory tells whether the server has the API group that History reads.
func (k *Kinds) hasHistory() bool {
	groups, err := k.discovery.ServerGroups()
	if err != nil {
		return true // nobody knows
	}
	for _, group := range groups.Groups {
		if group.Name == historyv1.GroupName {
			return true
		}
	}
	return false
}
