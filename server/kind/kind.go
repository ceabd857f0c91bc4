// Package kind describes the resources that plinth serves. One handler per verb serves
// every resource; what differs between resources is data in a Kind.
//
// The package owns the Kind, the interface of its codec, its field manager and the Registry
// of the Kinds that are served. It does not know where Kinds come from (kind/builtin,
// kind/custom) or how requests are answered.
package kind

import (
	"context"
	"iter"
	"slices"
	"strings"

	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
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
	// Protobuf says that objects have a protobuf encoding.
	Protobuf bool
	// PatchTypes are the media types of patches, in the order in which errors list them. The
	// last, apply, is not for subresources without a FieldManager. If CBOR is on, apply in CBOR
	// follows.
	PatchTypes []types.PatchType
	// TypedItems says that items of a list have kind and apiVersion of their own.
	TypedItems bool
	// Uncached says that kube-apiserver has no watch cache for the resource, so that its lists
	// are paged whatever resourceVersion they ask for. Source: DefaultWatchCacheSizes in
	// kubernetes/pkg/kubeapiserver/default_storage_factory_builder.go.
	Uncached bool
	// OwnNamespace says that admission takes an object to be in the namespace of its own name:
	// namespaces. Source: apiserver/pkg/endpoints/handlers/create.go, and for other verbs
	// apiserver/pkg/endpoints/request/requestinfo.go.
	OwnNamespace bool

	// Unaudited says that audit events never contain the objects in answers, because these are objects of other
	// resources, for which the audit policy may have another level.
	Unaudited bool

	// Custom is what only custom resources have; nil: the Kind is built in.
	Custom *CustomResource

	// Versions are the served versions, most preferred first. A custom resource has one Kind
	// per version, because the hub form of its objects is the version's; all its Kinds have
	// the same Stored.
	Versions []Version
	// Stored says what the log holds. Its group and resource make the key, so two Kinds
	// with the same Stored resource serve the same objects (events in both their groups).
	Stored Stored
	// VersionedAnnotation is an annotation that stands for a field in hub form. Objects in a
	// version have it; PartialObjectMetadata does not. Optional.
	VersionedAnnotation string
	// UpstreamPath replaces the resource's name in the keys of the objects in upstream's etcd:
	// "services/endpoints". Optional.
	UpstreamPath string

	// MaxNesting bounds the work of decoding a body: the sum, over the bytes of the body, of
	// the number of brackets around the byte. It is for types whose decoder reads nested
	// values again at each level. 0: no bound.
	MaxNesting int

	// Verbs in discovery's words, sorted: create, delete, deletecollection, get, list,
	// patch, update, watch. A verb that is not listed answers 405.
	Verbs []string

	Codec Codec
	// StoredHead begins the JSON of each object that is stored in Stored, see HeadOf; nil: its objects have no
	// stored form.
	StoredHead []byte
	// Create, Update and Delete are upstream's strategies.
	Create apirest.RESTCreateStrategy
	Update apirest.RESTUpdateStrategy
	Delete apirest.RESTDeleteStrategy
	// Hooks are called in writes besides the strategies.
	Hooks Hooks
	// ReturnDeleted makes delete answer with the deleted object where other resources
	// answer with a Status (upstream: Store.ReturnDeletedObject). ReturnStatusFor are versions
	// that answer with a Status all the same.
	ReturnDeleted   bool
	ReturnStatusFor []string

	// Attrs gives an object's labels and selectable fields.
	Attrs func(obj runtime.Object) (labels.Set, fields.Set, error)
	// Attributes maps names of selectable fields, as in Attrs, to attributes of package object, which are read from a
	// stored object without decoding it. Other fields are missing, and so is the name.
	Attributes map[string]string
	// FieldLabel checks one requirement of a field selector for a version and gives the
	// label and value to compare with Attrs' fields.
	FieldLabel func(version, label, value string) (string, string, error)
	// Table renders objects in hub form as rows for kubectl get.
	Table apirest.TableConvertor

	// Subresources are by name: status, scale, binding, exec.
	Subresources map[string]*Subresource

	// Virtual makes this a resource without storage: create calls Virtual and answers with
	// the result (reviews, bindings). Verbs is then only create.
	Virtual apirest.Creater
	// Observed makes this a resource without storage: get and list call Observed and answer with the result
	// (componentstatuses). It is either an apirest.Lister, whose lists are sorted and complete, or a Pager. Verbs are
	// then only get and list, with watch for a Follower and deletecollection for an apirest.CollectionDeleter that
	// answers with a Status.
	Observed apirest.Getter
}

// Pager returns lists of objects that are made for each request, in their own order.
type Pager interface {
	apirest.Getter
	// Page returns the first objects that the options select, or those behind a continue token, as many as there
	// is room for, and one at least.
	Page(ctx context.Context, options *metainternalversion.ListOptions, room Room) (*Page, error)
}

// Room is how much one answer may have.
type Room struct {
	Bytes int  // about so many of JSON
	Light bool // the answer has of each object only what Page.Entries have
}

// Page is a part of a list.
type Page struct {
	Revision int64
	Next     string            // continue token; empty on the last page
	Entries  []*sqlstore.Entry // in JSON, without what Fill adds
	Fill     Fill              // nil: nothing is to be added
}

// Fill yields the entries of a page, in their order, completed with the large parts, which it reads while the answer is
// written. The last pair may be an error.
type Fill func(ctx context.Context, entries iter.Seq[*sqlstore.Entry]) iter.Seq2[*sqlstore.Entry, error]

// Follower returns objects that can be watched.
type Follower interface {
	apirest.Getter
	// Follow returns the events after a revision. They end with ctx.
	Follow(ctx context.Context, after int64, options *metainternalversion.ListOptions) (Events, error)
}

// Events are what a watch sends; sqlstore.Watcher says what its methods are for.
type Events interface {
	Wait() <-chan struct{}
	Poll(ctx context.Context) (events []*sqlstore.Event, through int64, err error)
	Close()
}

var _ Events = (*sqlstore.Watcher)(nil)

// Version is one served version of a Kind.
type Version struct {
	Name string // "v1"
	// Deprecated is the Warning text that every request to this version gets; empty if
	// the version is not deprecated.
	Deprecated string
	// DeprecatedIn is the release of Kubernetes that deprecated the version, RemovedIn the
	// first release without it ("1.22"); empty if there is none yet. Replacement is the kind
	// to use instead; empty if there is none.
	// https://kubernetes.io/docs/reference/using-api/deprecation-policy/
	DeprecatedIn, RemovedIn string
	Replacement             schema.GroupVersionKind
	// Declared is the version whose declarative validation is run; empty: this one. Upstream has
	// none for some removed versions.
	Declared schema.GroupVersion
	// Fields tracks metadata.managedFields in writes of this version.
	Fields *FieldManager
}

// Stored names the group, resource and version under which the log holds objects.
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
	// NoTable says that the subresource is not served as a Table, although the object is.
	NoTable bool
	// Update is the strategy for writes through this subresource.
	Update apirest.RESTUpdateStrategy
	// Fields is like Version.Fields, for writes through this subresource, by version.
	Fields map[string]*FieldManager
	// View makes the body of a read from the object, Own the body that a write starts from,
	// and Apply puts a written body back into the object; all in hub form. Own adds those
	// entries of the object's managedFields that concern the body, and Apply takes them
	// back. version is the request's. nil: the body is the object itself.
	View  func(obj runtime.Object) (runtime.Object, error)
	Own   func(version string, obj runtime.Object) (runtime.Object, error)
	Apply func(ctx context.Context, version string, obj, body runtime.Object) error
	// New returns an empty body in hub form. nil: an empty object.
	New func() runtime.Object
	// Codec of the body; nil: the Kind's.
	Codec Codec
	// Table renders bodies as rows; nil: the Kind's.
	Table apirest.TableConvertor

	// The fields below are for subresources that are no part of the object. A subresource has
	// at most one of them, and then none of the fields from Update to Apply.

	// Post answers POST: a binding, an eviction, a token.
	Post apirest.NamedCreater
	// Connect connects the client to a pod, a node or a Service: exec, proxy.
	Connect apirest.Connecter
	// Stream answers GET with a stream of bytes: log.
	Stream apirest.GetterWithOptions
	// Parameters decodes the query of Connect and Stream into their options.
	Parameters runtime.ParameterCodec
}

// GroupResource is the group and resource in paths and error texts.
func (k *Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// GVK is the kind of objects in a version.
func (k *Kind) GVK(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: version, Kind: k.Kind}
}

// StoredGVK is the kind and apiVersion of objects in the log.
func (k *Kind) StoredGVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Stored.Group, Version: k.Stored.Version, Kind: k.Kind}
}

// ReturnsDeleted tells whether delete answers with the deleted object in a version.
func (k *Kind) ReturnsDeleted(version string) bool {
	return k.ReturnDeleted && !slices.Contains(k.ReturnStatusFor, version)
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

// Can reports whether the resource itself has a verb.
func (k *Kind) Can(verb string) bool { return slices.Contains(k.Verbs, verb) }

// Can reports whether the subresource has a verb.
func (s *Subresource) Can(verb string) bool { return slices.Contains(s.Verbs, verb) }

// Prefix begins the keys of the resource's objects in the log.
func (k *Kind) Prefix() string {
	return object.Prefix(k.Stored.Group, k.Stored.Resource)
}

// Key is the key of one object in the log. Cluster-scoped resources ignore namespace.
func (k *Kind) Key(namespace, name string) string {
	if !k.Namespaced {
		namespace = ""
	}
	return object.Key(k.Prefix(), namespace, name)
}

// UpstreamPrefix begins the keys of the objects in upstream's etcd: /registry/pods/. Some of
// upstream's errors contain the key.
func (k *Kind) UpstreamPrefix() string {
	path := k.UpstreamPath
	if path == "" {
		path = k.Resource
	}
	return object.Root + path + "/"
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
