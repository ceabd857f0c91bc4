package admission

import (
	apiadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/plinth-io/plinth/server/admission/policies"
)

func (o *Options) policies() policies.Options {
	return policies.Options{Store: o.Store, Kinds: o.Kinds, Client: o.Client, Authorizer: o.Authorizer, Skip: unasked}
}

func validatingPolicies(o *Options) apiadmission.Interface {
	return policies.NewValidating(o.policies())
}

// mutatingPolicies builds the plugin if upstream's feature is on: it is alpha.
func mutatingPolicies(o *Options) apiadmission.Interface {
	if !utilfeature.DefaultFeatureGate.Enabled(features.MutatingAdmissionPolicy) {
		return Chain{} // asks nobody
	}
	return policies.NewMutating(o.policies())
}
