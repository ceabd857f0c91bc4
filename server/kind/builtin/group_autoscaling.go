package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"

	"github.com/plinth-io/plinth/server/kind"
)

func autoscalingKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "autoscaling", versions: []string{"v2", "v1"}}.kinds(
		&kind.Kind{
			Resource: "horizontalpodautoscalers", Singular: "horizontalpodautoscaler", Kind: "HorizontalPodAutoscaler",
			ShortNames: []string{"hpa"}, Categories: []string{"all"},
			Namespaced: true,
			Create:     horizontalpodautoscaler.Strategy, Update: horizontalpodautoscaler.Strategy, Delete: horizontalpodautoscaler.Strategy,
			Subresources: subresources(status(horizontalpodautoscaler.StatusStrategy)),
		},
	)
}
