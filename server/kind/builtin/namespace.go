package builtin

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	api "k8s.io/kubernetes/pkg/apis/core"
)

// terminateNamespace marks a namespace whose deletion was asked for. The namespace
// controller empties it and then takes its finalizer out of the spec; only then may the
// namespace itself go.
func terminateNamespace(obj runtime.Object) (held bool) {
	ns := obj.(*api.Namespace)
	ns.Status.Phase = api.NamespaceTerminating
	return len(ns.Spec.Finalizers) > 0
}

// namespaceFinished adds the finalizers of the spec to the ones that every object has.
func namespaceFinished(_ context.Context, _ string, obj, existing runtime.Object) bool {
	ns, old := obj.(*api.Namespace), existing.(*api.Namespace)
	grace := old.DeletionGracePeriodSeconds
	return len(ns.Spec.Finalizers) == 0 && len(ns.Finalizers) == 0 && (grace == nil || *grace == 0)
}
