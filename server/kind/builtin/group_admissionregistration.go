package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/resolver"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"

	"github.com/plinth-io/plinth/server/kind"
)

func admissionKinds(o Options) []*kind.Kind {
	resolve := resolver.ResourceResolverFunc(o.resolve)
	policy := validatingadmissionpolicy.NewStrategy(o.Authorizer, resolve)
	binding := validatingadmissionpolicybinding.NewStrategy(o.Authorizer, policies{o.Store}, resolve)
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
