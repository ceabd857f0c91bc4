package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/authentication/selfsubjectreview"
	"k8s.io/kubernetes/pkg/registry/authentication/tokenreview"

	"github.com/plinth-io/plinth/server/kind"
)

func authenticationKinds(o Options) []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "authentication.k8s.io", versions: []string{"v1"}}.kinds(
		review(kind.Kind{Resource: "selfsubjectreviews", Singular: "selfsubjectreview", Kind: "SelfSubjectReview"},
			selfsubjectreview.NewREST()),
		review(kind.Kind{Resource: "tokenreviews", Singular: "tokenreview", Kind: "TokenReview"},
			tokenreview.NewREST(o.Authenticator, o.Audiences)),
	)
}
