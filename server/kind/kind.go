// Package kind describes the resources that plinth serves. One handler per verb serves
// every resource; all that differs between them is data in a Kind.
package kind

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Kind is one resource of one group in all its served versions. It is immutable once it
// is in a Registry.
type Kind struct {
	Group      string // empty for the core group
	Resource   string // plural name, as in paths: "deployments"
	Singular   string // "deployment"
	Kind       string // "Deployment"
	ListKind   string // "DeploymentList"
	ShortNames []string
	Categories []string
	Namespaced bool
	// NoProtobuf says that objects have no protobuf encoding (custom resources).
	NoProtobuf bool
	// TypedItems says that items of a list have kind and apiVersion of their own, as those
	// of custom resources do; items of built-in lists don't.
	TypedItems bool

	// Versions that are served, most preferred first. A custom resource has a Kind of its
	// own for each version, because the hub form of its objects is the version's; all have
	// the same Stored.
	Versions []Version
	// Stored is what the log holds: its group and resource make the key, so that two
	// Kinds with the same Stored resource are two faces of the same objects (events).
	Stored Stored
	// VersionedAnnotation is an annotation that stands for a field in hub form: objects of
	// a version have it, mere metadata has not. Optional.
	VersionedAnnotation string
	// Stale tells whether stored JSON may differ from what Codec.Load makes of it: objects
	// that were stored before a custom resource's schema changed may lack defaults. at is
	// the time of the commit in Unix milliseconds. nil: never.
	Stale func(json []byte, revision, at int64) bool
	// UpstreamPrefix begins the keys of the objects in upstream's etcd, which some of its
	// errors tell: "/registry/pods/".
	UpstreamPrefix string

	// MaxNesting bounds the work of reading a body: the sum over its bytes of the levels of
	// brackets that each is within. It is for kinds whose types read what is inside them
	// again at each level. 0: no bound.
	MaxNesting int

	// Verbs in discovery's words, sorted: create, delete, deletecollection, get, list,
	// patch, update, watch. A verb that is not listed answers 405.
	Verbs []string

	Codec Codec
	// Conversion is for Kinds whose Codec would have to ask somebody else. nil: it need not.
	Conversion *Conversion
	// Rules of create, update and delete; upstream calls them strategies.
	Create rest.RESTCreateStrategy
	Update rest.RESTUpdateStrategy
	Delete rest.RESTDeleteStrategy
	// Conceal takes out of a new object what the server has put there itself and what the
	// rules would decode for nothing, until reveal is called. Optional.
	Conceal func(obj runtime.Object) (reveal func())
	// Finishing says whether an update of an object with a deletionTimestamp completes
	// its deletion; nil means upstream's default (no finalizers, no grace period left).
	Finishing func(ctx context.Context, key string, obj, existing runtime.Object) bool
	// BeginDelete changes an object that gets its deletionTimestamp, and says whether
	// more than metadata.finalizers holds it (a namespace's spec.finalizers). Optional.
	BeginDelete func(obj runtime.Object) (held bool)
	// BeforeCreate and BeforeUpdate complete an object in hub form ahead of the rules, as
	// upstream's storage hooks of the resource do (a Service's defaults). Optional.
	BeforeCreate func(ctx context.Context, obj runtime.Object) error
	BeforeUpdate func(ctx context.Context, obj, old runtime.Object) error
	// BeginCreate and BeginUpdate take what an object needs from elsewhere (a Service's
	// addresses and ports), ahead of the rules; of writes through subresources they hear
	// nothing. finish is told how the write ended, once, unless that is not known. AfterDelete
	// gives back what a deleted object had, whichever request ended it; it hears nothing of
	// dry runs. They are upstream's registry.Store hooks. Optional.
	BeginCreate func(ctx context.Context, obj runtime.Object, options *metav1.CreateOptions) (finish registry.FinishFunc, err error)
	BeginUpdate func(ctx context.Context, obj, old runtime.Object, options *metav1.UpdateOptions) (finish registry.FinishFunc, err error)
	AfterDelete func(obj runtime.Object, options *metav1.DeleteOptions)
	// BeforeDelete is asked about every deletion, also of objects that do not exist; name
	// is empty for a collection. It may refuse, or warn through the context's recorder, as
	// upstream's storage of the resource does. Optional.
	BeforeDelete func(ctx context.Context, name string, options *metav1.DeleteOptions) error
	// ReturnDeleted makes delete answer with the deleted object where other resources
	// answer with a Status (upstream: Store.ReturnDeletedObject).
	ReturnDeleted bool

	// Attrs gives an object's labels and selectable fields.
	Attrs func(obj runtime.Object) (labels.Set, fields.Set, error)
	// FieldLabel checks one requirement of a field selector for a version and gives the
	// label and value to compare with Attrs' fields.
	FieldLabel func(version, label, value string) (string, string, error)
	// Table renders objects in hub form as rows for kubectl get.
	Table rest.TableConvertor

	// Definition made the Kind, and all others of the same object. nil: it is built in.
	Definition *Definition
	// Gone is closed when the Kind is taken out of service or replaced by one that renders
	// objects differently: then its watches end. nil: never; only custom resources go.
	Gone <-chan struct{}
	// Closed says that nothing is created any more: the definition is being deleted.
	Closed bool

	// Subresources by name: status, scale, binding, exec.
	Subresources map[string]*Subresource

	// Virtual makes this a resource without storage: create calls it and answers what it
	// returns (reviews, bindings). Then Verbs is just create.
	Virtual rest.Creater
	// Observed makes this a resource without storage, too: get and list answer what it
	// returns (the state of components). Then Verbs are just these.
	Observed Observer
}

// Observer gives objects that are found out when they are asked for.
type Observer interface {
	rest.Getter
	rest.Lister
}

// Version is one served version of a Kind.
type Version struct {
	Name string // "v1"
	// Deprecated is the Warning text that every request to this version gets; empty if
	// the version is not deprecated.
	Deprecated string
	// DeprecatedIn and RemovedIn are the releases of Kubernetes that deprecate the version
	// and that serve it no more, "1.33"; empty if there is none yet. Replacement is what to
	// use then; empty if there is nothing.
	// https://kubernetes.io/docs/reference/using-api/deprecation-policy/
	DeprecatedIn, RemovedIn string
	Replacement             schema.GroupVersionKind
	// Fields keeps metadata.managedFields of writes in this version.
	Fields *FieldManager
}

// Stored names what the log holds of a Kind.
type Stored struct {
	Group    string
	Resource string
	Version  string // storage version
}

// Subresource is a part of an object with verbs of its own.
type Subresource struct {
	Name  string
	Verbs []string // get, patch, update
	// GVK of the body if it is not the Kind's own (autoscaling/v1 Scale for scale).
	GVK schema.GroupVersionKind
	// NoTable says that it cannot be had as a Table, other than the object itself.
	NoTable bool
	// Update is the strategy for writes through this subresource.
	Update rest.RESTUpdateStrategy
	// Fields is Version.Fields for writes through this subresource, by the Kind's version.
	Fields map[string]*FieldManager
	// View and Apply translate between the object and the subresource's body, both in
	// hub form. nil: the body is the object itself. Own is the view that a write starts
	// from, with the entries of the object's managedFields that concern it; Apply takes
	// them back. version is the request's.
	View  func(obj runtime.Object) (runtime.Object, error)
	Own   func(version string, obj runtime.Object) (runtime.Object, error)
	Apply func(version string, obj, body runtime.Object) error
	// New returns an empty body in hub form. nil: as View.
	New func() runtime.Object
	// Codec of the body; nil: the Kind's.
	Codec Codec
	// Table renders bodies as rows; nil: the Kind's.
	Table rest.TableConvertor

	// What follows is for subresources that are no part of the object; each excludes the
	// fields from Update to Apply. Post answers POST: a binding, an eviction, a token.
	Post rest.NamedCreater
	// Connect answers its methods with a connection to somewhere else: exec, proxy.
	Connect rest.Connecter
	// Stream answers GET with a stream of bytes: log.
	Stream rest.GetterWithOptions
	// Parameters reads the query of Connect and Stream into their options.
	Parameters runtime.ParameterCodec
}

// GroupResource of the paths, for error texts.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// GVK of objects in version.
func (k *Kind) GVK(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: version, Kind: k.Kind}
}

// StoredGVK is the GVK written in the log.
func (k *Kind) StoredGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Stored.Group, Version: k.Stored.Version, Kind: k.Kind}
}

// Version returns the served version of that name, nil if there is none.
func (k *Kind) Version(name string) *Version {
	for i := range k.Versions {
		if k.Versions[i].Name == name {
			return &k.Versions[i]
		}
	}
	return nil
}

// Custom tells whether a CustomResourceDefinition made the Kind.
func (k *Kind) Custom() bool { return k.Gone != nil }

// Can tells whether the resource itself has verb.
func (k *Kind) Can(verb string) bool { return slices.Contains(k.Verbs, verb) }

// Can tells whether the subresource has verb.
func (s *Subresource) Can(verb string) bool { return slices.Contains(s.Verbs, verb) }

// Prefix is the part of the log's keys that is this resource's.
func (k *Kind) Prefix() string {
	group := k.Stored.Group
	if group == "" {
		group = "core"
	}
	return "/registry/" + group + "/" + k.Stored.Resource + "/"
}

// Key of one object. namespace is empty for cluster-scoped resources.
func (k *Kind) Key(namespace, name string) string {
	if !k.Namespaced {
		return k.Prefix() + name
	}
	return k.Prefix() + namespace + "/" + name
}

// SplitKey is the inverse of Key.
func (k *Kind) SplitKey(key string) (namespace, name string) {
	rest := strings.TrimPrefix(key, k.Prefix())
	if !k.Namespaced {
		return "", rest
	}
	namespace, name, _ = strings.Cut(rest, "/")
	return namespace, name
}
