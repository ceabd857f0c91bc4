package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/certificates/certificates"

	"github.com/plinth-io/plinth/server/kind"
)

func certificatesKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "certificates.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "certificatesigningrequests", Singular: "certificatesigningrequest", Kind: "CertificateSigningRequest",
			ShortNames: []string{"csr"},
			Create:     certificates.Strategy, Update: certificates.Strategy, Delete: certificates.Strategy,
			Attrs:        certificates.GetAttrs,
			Subresources: subresources(status(certificates.StatusStrategy), untabled(part("approval", certificates.ApprovalStrategy))),
		},
	)
}
