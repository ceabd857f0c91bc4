package past

import (
	"context"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/restmapper"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Kind is a type of objects as the server serves it.
type Kind struct {
	Resource   schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// Name is the name of the kind in the history: deployments.apps.
func (k Kind) Name() string { return k.Resource.GroupResource().String() }

// Target is an object, or all objects of a kind if it has no name, or all objects if it has no kind.
type Target struct {
	Kind      Kind
	Namespace string // empty: in no namespace; or in any one, if there is no name
	Name      string
	Anywhere  bool // objects of that name in any namespace
}

func (t Target) String() string { return t.Kind.Name() + "/" + t.Name }

// words are the arguments of a command that is about the object.
func (t Target) words() string { return t.String() + t.flag() }

// flag is the flag for the namespace.
func (t Target) flag() string {
	if t.Namespace == "" {
		return ""
	}
	return " -n " + t.Namespace
}

// Words are a type, and the name of an object if one is meant, as a user writes them.
type Words struct{ Type, Name string }

// SplitWords reads TYPE, TYPE NAME... and TYPE/NAME....
func SplitWords(args []string) (all []Words, err error) {
	joined := 0
	for _, arg := range args {
		kind, name, ok := strings.Cut(arg, "/")
		if !ok {
			continue
		}
		if joined++; kind == "" || name == "" || strings.Contains(name, "/") {
			return nil, mistakef("%q: write TYPE/NAME, such as deployments/web", arg)
		}
		all = append(all, Words{kind, name})
	}
	switch {
	case slices.Contains(args, ""):
		return nil, mistakef("an argument is empty: write TYPE/NAME or TYPE NAME")
	case joined == len(args):
		return all, nil
	case joined > 0:
		return nil, mistakef("%q: write either TYPE/NAME or TYPE NAME", args)
	case len(args) == 1:
		return []Words{{Type: args[0]}}, nil
	}
	for _, name := range args[1:] {
		all = append(all, Words{args[0], name})
	}
	return all, nil
}

// FindPastKinds is FindPastKind for several types, separated by commas, of which one may stand for others
// as all does for kubectl.
func (c *Client) FindPastKinds(ctx context.Context, text string) (kinds []Kind, err error) {
	for _, one := range strings.Split(text, ",") {
		names := []string{one}
		if members := c.category(one); len(members) > 0 {
			names = members
		}
		for _, name := range names {
			kind, err := c.FindPastKind(ctx, name)
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
func (c *Client) category(text string) (names []string) {
	members, _ := restmapper.NewDiscoveryCategoryExpander(c.discovery).Expand(text)
	for _, member := range members {
		names = append(names, member.String())
	}
	return names
}

// FindKind looks up a type as kubectl does: deployments, deployment, deploy, deployments.apps,
// deployments.v1.apps.
func (c *Client) FindKind(text string) (Kind, error) {
	mapper := restmapper.NewShortcutExpander(c.mapper, c.discovery, nil)
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
		return Kind{}, c.noSuchKind(text, err)
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return Kind{}, c.noSuchKind(text, err)
	}
	return Kind{mapping.Resource, gvk.Kind, mapping.Scope.Name() == meta.RESTScopeNameNamespace}, nil
}

// FindPastKind is FindKind for a type that may be gone. It has to be written in full then, plural and
// group; its last definition, if that is kept, says whether its objects were in namespaces.
func (c *Client) FindPastKind(ctx context.Context, text string) (Kind, error) {
	kind, err := c.FindKind(text)
	var unknown *UnknownKindError
	if !errors.As(err, &unknown) || !strings.Contains(text, ".") {
		return kind, err
	}
	kind = pastKind(text)
	definitions, err := c.FindKind("customresourcedefinitions.apiextensions.k8s.io")
	if err != nil {
		return kind, nil
	}
	v, err := first(c.Versions(ctx, Query{Limit: 1}.ToObject(definitions.In("", text))))
	if err != nil || v == nil {
		return kind, nil
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

// In returns the target of that kind in a namespace, which kinds without namespaces ignore. Of a kind
// that is gone nobody knows that, so the namespace counts.
func (k Kind) In(namespace, name string) Target {
	if !k.Namespaced && k.Kind != "" {
		namespace = ""
	}
	return Target{Kind: k, Namespace: namespace, Name: name}
}

// forgetKinds makes the client look up types anew.
func (c *Client) forgetKinds() { c.mapper.Reset() }

// hasStatus tells whether objects of the kind have a status that only its own subresource writes.
func (c *Client) hasStatus(k Kind) bool {
	list, err := c.discovery.ServerResourcesForGroupVersion(k.Resource.GroupVersion().String())
	if err != nil {
		return false
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == k.Resource.Resource+"/status" })
}

// Served returns the names of all types whose objects can be listed: deployments.apps, pods.
func (c *Client) Served() ([]string, error) {
	lists, err := c.discovery.ServerPreferredResources()
	if len(lists) == 0 && err != nil {
		return nil, c.unreachable(err)
	}
	var names []string
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil || gv.Group == historyv1.GroupName {
			continue
		}
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") {
				names = append(names, schema.GroupResource{Group: gv.Group, Resource: r.Name}.String())
			}
		}
	}
	return names, nil
}

// Names returns the names of the objects of a type that are there now.
func (c *Client) Names(ctx context.Context, kindText, namespace string) (names []string, err error) {
	kind, err := c.FindKind(kindText)
	if err != nil {
		return nil, err
	}
	t := kind.In(namespace, "")
	list, err := c.objects.Resource(kind.Resource).Namespace(t.Namespace).List(ctx, metav1.ListOptions{Limit: 500})
	if err != nil {
		return nil, c.unreachable(err)
	}
	for _, object := range list.Items {
		names = append(names, object.GetName())
	}
	return names, nil
}
