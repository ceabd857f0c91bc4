package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/authorization/localsubjectaccessreview"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectaccessreview"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectrulesreview"
	"k8s.io/kubernetes/pkg/registry/authorization/subjectaccessreview"

	"github.com/plinth-io/plinth/server/kind"
)

func authorizationKinds(o Options) []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "authorization.k8s.io", versions: []string{"v1"}}.kinds(
		review(kind.Kind{Resource: "localsubjectaccessreviews", Singular: "localsubjectaccessreview", Kind: "LocalSubjectAccessReview", Namespaced: true},
			boundedReview{localsubjectaccessreview.NewREST(o.Authorizer, legacyscheme.Scheme)}),
		review(kind.Kind{Resource: "selfsubjectaccessreviews", Singular: "selfsubjectaccessreview", Kind: "SelfSubjectAccessReview"},
			boundedReview{selfsubjectaccessreview.NewREST(o.Authorizer, legacyscheme.Scheme)}),
		review(kind.Kind{Resource: "selfsubjectrulesreviews", Singular: "selfsubjectrulesreview", Kind: "SelfSubjectRulesReview"},
			selfsubjectrulesreview.NewREST(o.Rules)),
		review(kind.Kind{Resource: "subjectaccessreviews", Singular: "subjectaccessreview", Kind: "SubjectAccessReview"},
			boundedReview{subjectaccessreview.NewREST(o.Authorizer, legacyscheme.Scheme)}),
	)
}
