package builtin

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/resolver"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

func admissionKinds(o Options) []*kind.Kind {
	resolve := resolver.ResourceResolverFunc(o.resolve)
	policy := validatingadmissionpolicy.NewStrategy(o.Authorizer, resolve)
	binding := validatingadmissionpolicybinding.NewStrategy(o.Authorizer, policies{o.Policy}, resolve)
	mutating := mutatingadmissionpolicy.NewStrategy(o.Authorizer, resolve)
	mutatingBinding := mutatingadmissionpolicybinding.NewStrategy(o.Authorizer, mutatingPolicies{o.Store}, resolve)
	return group{scheme: legacyscheme.Scheme, name: "admissionregistration.k8s.io", versions: []string{"v1", "v1beta1", "v1alpha1"}}.kinds(
		&kind.Kind{
			Resource: "mutatingadmissionpolicies", Singular: "mutatingadmissionpolicy", Kind: "MutatingAdmissionPolicy",
			Categories: []string{"api-extensions"},
			Create:     mutating, Update: mutating, Delete: mutating,
		},
		&kind.Kind{
			Resource: "mutatingadmissionpolicybindings", Singular: "mutatingadmissionpolicybinding", Kind: "MutatingAdmissionPolicyBinding",
			Categories: []string{"api-extensions"},
			Create:     mutatingBinding, Update: mutatingBinding, Delete: mutatingBinding,
		},
		&kind.Kind{
			Resource: "mutatingwebhookconfigurations", Singular: "mutatingwebhookconfiguration", Kind: "MutatingWebhookConfiguration",
			Categories: []string{"api-extensions"},
			Create:     mutatingwebhookconfiguration.Strategy, Update: mutatingwebhookconfiguration.Strategy, Delete: mutatingwebhookconfiguration.Strategy,
		},
		&kind.Kind{
			Resource: "validatingadmissionpolicies", Singular: "validatingadmissionpolicy", Kind: "ValidatingAdmissionPolicy",
			Categories: []string{"api-extensions"},
			Create:     policy, Update: policy, Delete: policy,
			Subresources: subresources(status(validatingadmissionpolicy.NewStatusStrategy(policy))),
		},
		&kind.Kind{
			Resource: "validatingadmissionpolicybindings", Singular: "validatingadmissionpolicybinding", Kind: "ValidatingAdmissionPolicyBinding",
			Categories: []string{"api-extensions"},
			Create:     binding, Update: binding, Delete: binding,
		},
		&kind.Kind{
			Resource: "validatingwebhookconfigurations", Singular: "validatingwebhookconfiguration", Kind: "ValidatingWebhookConfiguration",
			Categories: []string{"api-extensions"},
			Create:     validatingwebhookconfiguration.Strategy, Update: validatingwebhookconfiguration.Strategy, Delete: validatingwebhookconfiguration.Strategy,
		},
	)
}

// resolve finds the resource of a policy's paramKind among those that are served.
func (o Options) resolve(gvk schema.GroupVersionKind) (schema.GroupVersionResource, error) {
	if o.Registry != nil {
		for _, k := range o.Registry.Set().Kinds {
			if k.Group == gvk.Group && k.Kind == gvk.Kind && k.Version(gvk.Version) != nil {
				return gvk.GroupVersion().WithResource(k.Resource), nil
			}
		}
	}
	return schema.GroupVersionResource{}, &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
}

// policies reads the policy that a binding names.
type policies struct {
	get func(ctx context.Context, name string) (*admissionregistration.ValidatingAdmissionPolicy, error)
}

func (p policies) GetValidatingAdmissionPolicy(ctx context.Context, name string) (*admissionregistration.ValidatingAdmissionPolicy, error) {
	if p.get == nil {
		return nil, apierrors.NewNotFound(admissionregistration.Resource("validatingadmissionpolicies"), name)
	}
	return p.get(ctx, name)
}

// mutatingPolicies reads the policy that a binding of mutations names. They are stored as
// v1alpha1, the only version there is.
type mutatingPolicies struct{ store *sqlstore.Store }

func (p mutatingPolicies) GetMutatingAdmissionPolicy(_ context.Context, name string) (*admissionregistration.MutatingAdmissionPolicy, error) {
	var e *sqlstore.Entry
	if p.store != nil {
		e = p.store.Get("/registry/admissionregistration.k8s.io/mutatingadmissionpolicies/" + name)
	}
	if e == nil {
		return nil, apierrors.NewNotFound(admissionregistration.Resource("mutatingadmissionpolicies"), name)
	}
	policy := &admissionregistration.MutatingAdmissionPolicy{}
	if err := runtime.DecodeInto(legacyscheme.Codecs.UniversalDecoder(), e.JSON, policy); err != nil {
		return nil, fmt.Errorf("decode policy %s: %w", name, err)
	}
	return policy, nil
}
