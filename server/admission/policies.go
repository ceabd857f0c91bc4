package admission

import (
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/plinth-io/plinth/server/admission/policies"
)

func (o *Options) policies(c *configuration) policies.Options {
	return policies.Options{
		Store: o.Store, Kinds: o.Kinds, Client: o.Client, Authorizer: o.Authorizer, Skip: unasked, Manifests: c.manifests(),
	}
}

func validatingPolicies(o *Options, c *configuration) (apiadmission.Interface, error) {
	return policies.NewValidating(o.policies(c))
}

// mutatingPolicies builds the plugin if upstream's feature is on.
func mutatingPolicies(o *Options, c *configuration) (apiadmission.Interface, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.MutatingAdmissionPolicy) {
		return Chain{}, nil // asks nobody
	}
	return policies.NewMutating(o.policies(c))
}
