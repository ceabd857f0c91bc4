package builtin

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/registry/scheduling/compositepodgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/scheduling/workload"

	"github.com/plinth-io/plinth/server/kind"
)

func schedulingKinds() []*kind.Kind {
	kinds := []*kind.Kind{{
		Resource: "priorityclasses", Singular: "priorityclass", Kind: "PriorityClass",
		ShortNames: []string{"pc"},
		Create:     priorityclass.Strategy, Update: priorityclass.Strategy, Delete: priorityclass.Strategy,
		Hooks: kind.Hooks{CheckDelete: keepSystemPriorities},
	}}
	if utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload) {
		groups := podgroup.NewStrategy()
		kinds = append(kinds, &kind.Kind{
			Resource: "podgroups", Singular: "podgroup", Kind: "PodGroup",
			Namespaced: true,
			Create:     groups, Update: groups, Delete: groups,
			Subresources: subresources(untabled(status(podgroup.NewStatusStrategy(groups)))),
		}, &kind.Kind{
			Resource: "workloads", Singular: "workload", Kind: "Workload",
			Namespaced: true,
			Create:     workload.Strategy, Update: workload.Strategy, Delete: workload.Strategy,
		})
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) {
		groups := compositepodgroup.NewStrategy()
		kinds = append(kinds, &kind.Kind{
			Resource: "compositepodgroups", Singular: "compositepodgroup", Kind: "CompositePodGroup",
			Namespaced: true,
			Create:     groups, Update: groups, Delete: groups,
			Subresources: subresources(untabled(status(compositepodgroup.NewStatusStrategy(groups)))),
		})
	}
	return group{scheme: legacyscheme.Scheme, name: "scheduling.k8s.io", versions: []string{"v1", "v1beta1", "v1alpha3"}}.kinds(kinds...)
}

// keepSystemPriorities refuses to delete a class by name that the control plane itself needs. As
// upstream, it does not refuse to delete a collection with such classes.
func keepSystemPriorities(_ context.Context, name string, _ *metav1.DeleteOptions) error {
	for _, class := range schedulingv1.SystemPriorityClassNames() {
		if name == class {
			return apierrors.NewForbidden(scheduling.Resource("priorityclasses"), name,
				errors.New("this is a system priority class and cannot be deleted"))
		}
	}
	return nil
}
