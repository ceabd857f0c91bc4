package admit

import (
	"context"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/apis/certificates"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/approval"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/ctbattest"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/signing"
	"k8s.io/kubernetes/plugin/pkg/admission/certificates/subjectrestriction"
)

// Certificates are upstream's plugins that guard what signers answer for: who approves and
// who signs the requests of a signer needs permission for that signer, nobody asks for a
// client certificate of system:masters, and the bundle of a signer is written by who may
// attest it.
// https://kubernetes.io/docs/reference/access-authn-authz/certificate-signing-requests/#authorization
type Certificates struct{ Chain }

// NewCertificates returns the plugins on an authorizer.
func NewCertificates(authz authorizer.Authorizer) (*Certificates, error) {
	approve, sign, attest := approval.NewPlugin(), signing.NewPlugin(), ctbattest.NewPlugin()
	approve.SetAuthorizer(authz)
	sign.SetAuthorizer(authz)
	attest.SetAuthorizer(authz)
	attest.InspectFeatureGates(utilfeature.DefaultFeatureGate)
	c := &Certificates{Chain{approve, sign, attest, subjectrestriction.NewPlugin()}}
	for _, plugin := range c.Chain {
		if err := plugin.(admission.InitializationValidator).ValidateInitialization(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Validate looks at one group only: nearly no write is of it.
func (c *Certificates) Validate(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	if a.GetResource().Group != certificates.GroupName {
		return nil
	}
	return c.Chain.Validate(ctx, a, o)
}
