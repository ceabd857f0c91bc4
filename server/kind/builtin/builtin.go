// Package builtin describes the resources of Kubernetes itself: one table per API group,
// one literal per resource, all behaviour taken from upstream's types, conversions,
// strategies and columns. It is the only package that imports upstream's registries.
package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/storage"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
	"github.com/plinth-io/plinth/server/tokens"
	"github.com/plinth-io/plinth/sqlstore"
)

// Options are what reviews ask for their answers.
type Options struct {
	// Authorizer answers access reviews and guards the parameters of admission policies;
	// nil denies everything.
	Authorizer authorizer.Authorizer
	// Rules answers selfsubjectrulesreviews; nil knows no rules.
	Rules authorizer.RuleResolver
	// Authenticator answers tokenreviews; nil knows no token.
	Authenticator authenticator.Request
	// Audiences that a token of a tokenreview must be for if the review names none.
	Audiences authenticator.Audiences
	// Registry is where the resource of an admission policy's paramKind is looked up, and
	// Policy reads the policy of a binding. They narrow down which permission the author
	// needs; without them it is that for every resource.
	Registry *kind.Registry
	Policy   func(ctx context.Context, name string) (*admissionregistration.ValidatingAdmissionPolicy, error)
	// Store is where the objects are, for what upstream's registries do with more than one
	// of them; nil leaves that out.
	Store *sqlstore.Store
	// Client is of the API itself, for what those do through it; set if Store is.
	Client *clientrest.Config
	// Tokens signs the tokens of service accounts; nil leaves that out.
	Tokens *tokens.Tokens
	// Database tells whether the database can be used, in words for everybody; nil: it is
	// not known.
	Database func() error
	// Enabled says which versions are served of which resource; nil: see DefaultEnabled.
	Enabled *Enabled
	// Removed are versions to serve that Kubernetes no longer does.
	Removed []Removed
	// Reach is for connections to pods, nodes and Services.
	Reach Reach
	// Services are the ranges that addresses and ports of Services are taken from; nil: the
	// defaults.
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
	var kinds []*kind.Kind
	for _, group := range [][]*kind.Kind{
		coreKinds(o),
		admissionKinds(o),
		appsKinds(),
		authenticationKinds(o),
		authorizationKinds(o),
		autoscalingKinds(),
		batchKinds(),
		certificatesKinds(),
		coordinationKinds(),
		discoveryKinds(),
		eventsKinds(),
		extensionsKinds(),
		flowcontrolKinds(),
		internalKinds(),
		networkingKinds(),
		nodeKinds(),
		policyKinds(),
		rbacKinds(),
		registrationKinds(),
		resourceKinds(o),
		schedulingKinds(),
		storageKinds(),
		storageMigrationKinds(),
	} {
		kinds = append(kinds, group...)
	}
	if o.Store != nil {
		kinds = append(kinds, attach(kinds, o)...)
	}
	removed := faces(kinds, o.Removed) // before today's versions are switched off
	addRollback(o, kinds, removed)
	return append(o.Enabled.of(kinds), removed...)
}

// group completes the Kinds of one API group with what most resources have in common.
type group struct {
	scheme   *runtime.Scheme
	name     string
	versions []string // most preferred first; a kind has those that its type lives in
	stored   string   // version, where a kind has it; empty: the most preferred
}

func (g group) kinds(list ...*kind.Kind) []*kind.Kind {
	for _, k := range list {
		g.complete(k)
	}
	return list
}

func (g group) complete(k *kind.Kind) {
	k.Group = g.name
	k.ListKind = k.Kind + "List"
	if k.Versions == nil {
		for _, v := range g.versions {
			if lives(g.scheme, k.GVK(v)) {
				k.Versions = append(k.Versions, version(g.scheme, k.GVK(v)))
			}
		}
	}
	if k.Stored == (kind.Stored{}) {
		k.Stored = kind.Stored{Group: g.name, Resource: k.Resource, Version: k.Versions[0].Name}
		if k.Version(g.stored) != nil {
			k.Stored.Version = g.stored
		}
	}
	if k.UpstreamPrefix == "" {
		k.UpstreamPrefix = "/registry/" + k.Resource + "/"
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

// translate gives k what depends on the group and versions that it is served in.
func (g group) translate(k *kind.Kind) {
	k.Codec = newCodec(g.scheme, g.name, k.Kind, k.StoredGVK())
	k.FieldLabel = func(version, label, value string) (string, string, error) {
		return g.scheme.ConvertFieldLabel(k.GVK(version), label, value)
	}
}

var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

// metadataAttrs selects by name and, where there is one, namespace.
func metadataAttrs(namespaced bool) storage.AttrFunc {
	if namespaced {
		return storage.DefaultNamespaceScopedAttr
	}
	return storage.DefaultClusterScopedAttr
}
