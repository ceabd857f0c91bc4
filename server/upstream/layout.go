package upstream

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// DefaultPrefix is the prefix of all keys of a kube-apiserver without --etcd-prefix.
const DefaultPrefix = "/registry"

// Layout knows where and how a kube-apiserver stores objects.
type Layout struct {
	prefix string               // ends with a slash
	byPath map[string]*resource // the path between prefix and namespace or name, such as "services/specs/"
	byName map[schema.GroupResource]*resource
}

// resource is a resource in both layouts.
type resource struct {
	name       schema.GroupResource // in keys of plinth's log
	path       string
	kind       string // the kind of its objects
	namespaced bool
	builtin    *builtinResource // nil: a custom resource
}

// builtinResource has what only Kubernetes' own resources need.
type builtinResource struct {
	codec          kind.Codec
	stored         schema.GroupVersionKind // the version in plinth's log
	protobuf, json runtime.Serializer
}

// NewLayout returns the layout below a prefix, without custom resources.
func NewLayout(prefix string) (*Layout, error) {
	prefix = "/" + strings.Trim(prefix, "/") + "/"
	if prefix == "//" {
		return nil, errors.New("the prefix is empty")
	}
	all, err := builtin.ParseEnabled(map[string]string{"api/all": "true"}, builtin.Forward{})
	if err != nil {
		return nil, err
	}
	l := &Layout{prefix: prefix, byPath: map[string]*resource{}, byName: map[schema.GroupResource]*resource{}}
	for _, k := range builtin.Kinds(builtin.Options{Enabled: all}) {
		if k.Virtual == nil && k.Observed == nil && k.Group == k.Stored.Group { // events are in two groups and counted once
			l.add(builtinOf(k))
		}
	}
	return l, nil
}

func (l *Layout) add(r *resource) {
	l.byPath[r.path] = r
	l.byName[r.name] = r
}

func builtinOf(k *kind.Kind) *resource {
	scheme := schemeOf(k.StoredGVK())
	return &resource{
		name:       schema.GroupResource{Group: k.Stored.Group, Resource: k.Stored.Resource},
		path:       strings.TrimPrefix(k.UpstreamPrefix(), object.Root),
		kind:       k.Kind,
		namespaced: k.Namespaced,
		builtin: &builtinResource{
			codec:    k.Codec,
			stored:   k.StoredGVK(),
			protobuf: protobuf.NewSerializer(scheme, scheme),
			json:     json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{}),
		},
	}
}

func schemeOf(gvk schema.GroupVersionKind) *runtime.Scheme {
	for _, scheme := range builtin.Schemes() {
		if scheme.Recognizes(gvk) {
			return scheme
		}
	}
	panic(fmt.Sprintf("%v has no scheme", gvk)) // a Kind without a type, with which every test would fail
}

// Prefix returns the prefix of all keys, which ends with a slash.
func (l *Layout) Prefix() string { return l.prefix }

// leftOut has the keys that are not objects, and why they are left out. A name that ends with a slash stands
// for all keys below it.
var leftOut = map[string]string{
	"masterleases/":     "kube-apiservers' own addresses, which are written anew",
	"peerserverleases/": "kube-apiservers' own addresses, which are written anew",
	"ranges/":           "lists of taken addresses and ports, which are made again from the Services",
	"health":            "a probe",
}

// place is the resource, namespace and name of an object.
type place struct {
	*resource
	namespace, name string
}

// logKey returns the object's key in plinth's log.
func (p place) logKey() string {
	return object.Key(object.Prefix(p.resource.name.Group, p.resource.name.Resource), p.namespace, p.name)
}

// find returns the place of the object with a key of the etcd.
func (l *Layout) find(key string) (place, error) {
	rest := strings.TrimPrefix(key, l.prefix)
	first, below, _ := strings.Cut(rest, "/")
	if why := leftOut[first+"/"]; why != "" && below != "" {
		return place{}, &LeftOut{why}
	}
	if why := leftOut[rest]; why != "" {
		return place{}, &LeftOut{why}
	}
	second, _, _ := strings.Cut(below, "/")
	r := l.byPath[first+"/"+second+"/"]
	if r == nil {
		r = l.byPath[first+"/"]
	}
	switch {
	case r != nil:
	case strings.Contains(first, ".") && second != "":
		return place{}, fmt.Errorf("there is no CustomResourceDefinition %s.%s", second, first)
	default:
		return place{}, fmt.Errorf("there is no resource with the path %s in Kubernetes %s", first, release)
	}
	return r.split(strings.TrimPrefix(rest, r.path))
}

// release is the release of Kubernetes whose resources are known, without its patch version.
const release = kind.Major + "." + kind.Minor

var errPath = errors.New("the key does not end with the name of an object")

func (r *resource) split(rest string) (place, error) {
	p := place{resource: r, name: rest}
	if r.namespaced {
		p.namespace, p.name, _ = strings.Cut(rest, "/")
	}
	if p.name == "" || strings.Contains(p.name, "/") {
		return place{}, errPath
	}
	return p, nil
}

// LeftOut is the error for a key whose value nobody needs.
type LeftOut struct{ Why string }

func (e *LeftOut) Error() string { return e.Why }

// guess returns the place of an object whose custom resource is not known.
func (l *Layout) guess(key string) place {
	rest := strings.TrimPrefix(key, l.prefix)
	group, below, _ := strings.Cut(rest, "/")
	plural, name, _ := strings.Cut(below, "/")
	return place{resource: &resource{name: schema.GroupResource{Group: group, Resource: plural}}, name: name}
}
