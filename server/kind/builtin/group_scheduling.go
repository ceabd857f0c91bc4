package builtin

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	schedulingv1 "k8s.io/kubernetes/pkg/apis/scheduling/v1"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"

	"github.com/plinth-io/plinth/server/kind"
)

func schedulingKinds() []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "scheduling.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "priorityclasses", Singular: "priorityclass", Kind: "PriorityClass",
			ShortNames: []string{"pc"},
			Create:     priorityclass.Strategy, Update: priorityclass.Strategy, Delete: priorityclass.Strategy,
			Hooks: kind.Hooks{CheckDelete: keepSystemPriorities},
		},
	)
}

// keepSystemPriorities refuses to delete a class by name that the control plane itself needs. As
// upstream, it does not refuse to delete a collection with such classes.
func keepSystemPriorities(_ context.Context, name string, _ *metav1.DeleteOptions) error {
	for _, class := range schedulingv1.SystemPriorityClasses() {
		if name == class.Name {
			return apierrors.NewForbidden(scheduling.Resource("priorityclasses"), name,
				errors.New("this is a system priority class and cannot be deleted"))
		}
	}
	return nil
}
