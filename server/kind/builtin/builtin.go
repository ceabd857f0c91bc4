// Package builtin describes the resources of Kubernetes itself. There is one table per API
// group (group_*.go) and one literal per resource; the other files are what the literals
// name. All behaviour is taken from upstream's types, conversions, strategies and columns.
//
// The package owns the versions that are served (enabled, removed) and upstream's registries
// (stores). It and its subpackage allocate are the only ones that import upstream's
// registries. It does not know how requests are answered.
package builtin

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/storage"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/tokens"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options are what Kinds need from the rest of the server.
type Options struct {
	// Authorizer answers access reviews and guards the parameters of admission policies;
	// nil denies everything.
	Authorizer authorizer.Authorizer
	// Rules answers selfsubjectrulesreviews; nil knows no rules.
	Rules authorizer.RuleResolver
	// Roles finds the rules of users and roles, to check that nobody gives away more than he has;
	// nil: there are no such checks.
	Roles validation.AuthorizationRuleResolver
	// Authenticator answers tokenreviews; nil knows no token.
	Authenticator authenticator.Request
	// Audiences that a token of a tokenreview must be for if the review names none.
	Audiences authenticator.Audiences
	// Registry is used to find the resource of an admission policy's paramKind. It tells which
	// permission the author needs; without it the author needs permission for every resource.
	Registry *kind.Registry
	// Store holds the objects, for subresources and hooks that use upstream's registries; nil
	// leaves those out. The author of a policy's binding needs permission for its parameters.
	Store *sqlstore.Store
	// Client is a client of this server for upstream's registries. It is needed with Store.
	Client *clientrest.Config
	// Tokens signs the tokens of service accounts; nil leaves that out.
	Tokens *tokens.Tokens
	// Database checks the database for componentstatuses. Clients see the error. nil: the
	// state is unknown.
	Database func() error
	// Enabled says which versions are served of which resource; nil: see DefaultEnabled.
	Enabled *Enabled
	// Removed are versions to serve although Kubernetes has removed them.
	Removed []Removed
	// Transports are for connections to pods, nodes and Services.
	Transports Transports
	// Services are the ranges of the addresses and ports of Services; nil: the defaults.
	Services *allocate.Ranges
}

// Kinds returns every resource that is enabled, in no particular order.
func Kinds(o Options) []*kind.Kind {
	if o.Authorizer == nil {
		o.Authorizer = authorizerfactory.NewAlwaysDenyAuthorizer()
	}
	if o.Rules == nil {
		o.Rules = authorizerfactory.NewAlwaysDenyAuthorizer()
	}
	if o.Enabled == nil {
		o.Enabled = DefaultEnabled()
	}
	byResource := map[schema.GroupResource]*kind.Kind{}
	s := newStores(o, func(r schema.GroupResource) *kind.Kind { return byResource[r] })
	kinds := s.kinds()
	for _, k := range kinds {
		byResource[k.GroupResource()] = k
	}
	removed := s.removedKinds(byResource) // before today's versions are switched off
	kinds = o.Enabled.of(kinds)
	for _, k := range removed {
		// An older release that is emulated may have the version itself.
		if today := byResource[k.GroupResource()]; today == nil || today.Version(k.Versions[0].Name) == nil {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// kinds are the Kinds of all groups, enabled or not.
func (s *stores) kinds() []*kind.Kind {
	return slices.Concat(
		s.coreKinds(),
		admissionKinds(s.Options),
		appsKinds(),
		authenticationKinds(s.Options),
		authorizationKinds(s.Options),
		autoscalingKinds(),
		batchKinds(),
		certificatesKinds(s.Options),
		coordinationKinds(),
		discoveryKinds(),
		eventsKinds(),
		apiextensionsKinds(),
		flowcontrolKinds(),
		internalKinds(),
		lifecycleKinds(),
		networkingKinds(),
		nodeKinds(),
		policyKinds(),
		rbacKinds(s.Options),
		apiregistrationKinds(),
		resourceKinds(s.Options),
		schedulingKinds(),
		storageKinds(),
		storageMigrationKinds(),
	)
}

// group completes the Kinds of one API group with the fields that most resources share.
type group struct {
	scheme   *runtime.Scheme
	name     string
	versions []string // most preferred first; a kind has those in which its type is served
}

// kinds completes the Kinds of list; nil entries are left out.
func (g group) kinds(list ...*kind.Kind) []*kind.Kind {
	list = slices.DeleteFunc(list, func(k *kind.Kind) bool { return k == nil })
	for _, k := range list {
		g.complete(k)
	}
	return list
}

func (g group) complete(k *kind.Kind) {
	k.Group = g.name
	k.ListKind = k.Kind + "List"
	k.Protobuf, k.PatchTypes = true, patchTypes
	if k.Versions == nil {
		for _, v := range g.versions {
			if stillServed(g.scheme, k.GVK(v)) {
				k.Versions = append(k.Versions, version(g.scheme, k.GVK(v)))
			}
		}
	}
	if k.Stored == (kind.Stored{}) {
		k.Stored = kind.Stored{Group: g.name, Resource: k.Resource, Version: storageVersion(g.scheme, schema.GroupResource{Group: g.name, Resource: k.Resource}, k.Kind)}
	}
	if k.Verbs == nil {
		k.Verbs = allVerbs
	}
	if k.Attrs == nil {
		k.Attrs = metadataAttrs(k.Namespaced)
	}
	if k.Table == nil {
		k.Table = columns()
	}
	g.translate(k)
}

// translate sets the codec and the field labels of k, which depend on its group and versions.
func (g group) translate(k *kind.Kind) {
	c := newCodec(g.scheme, g.name, k.Kind, k.StoredGVK())
	if own, ok := k.Codec.(*codec); ok {
		c.prune = own.prune
	}
	k.Codec, k.StoredHead = c, c.header
	k.FieldLabel = func(version, label, value string) (string, string, error) {
		return g.scheme.ConvertFieldLabel(k.GVK(version), label, value)
	}
}

var patchTypes = []types.PatchType{types.JSONPatchType, types.MergePatchType, types.StrategicMergePatchType, types.ApplyPatchType}

var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// metadataAttrs selects by name and, where there is one, namespace.
func metadataAttrs(namespaced bool) storage.AttrFunc {
	if namespaced {
		return storage.DefaultNamespaceScopedAttr
	}
	return storage.DefaultClusterScopedAttr
}
