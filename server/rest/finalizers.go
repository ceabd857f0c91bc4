package rest

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apirest "k8s.io/apiserver/pkg/registry/rest"
)

// gcFinalizers records a deletion's propagation policy as finalizers, on which the garbage
// collector acts. changed says that they differ from the object's.
// https://kubernetes.io/docs/concepts/architecture/garbage-collection/#cascading-deletion
func gcFinalizers(ctx context.Context, rules apirest.RESTDeleteStrategy, m metav1.Object, options *metav1.DeleteOptions) (finalizers []string, changed bool) {
	orphan, foreground := propagation(ctx, rules, m, options)
	hadOrphan, hadForeground := false, false
	for _, f := range m.GetFinalizers() {
		switch f {
		case metav1.FinalizerOrphanDependents:
			hadOrphan = true
		case metav1.FinalizerDeleteDependents:
			hadForeground = true
		default:
			finalizers = append(finalizers, f)
		}
	}
	if orphan == hadOrphan && foreground == hadForeground {
		return m.GetFinalizers(), false
	}
	if orphan {
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	return finalizers, true
}

// propagation finds the policy. The first of these that applies decides: the Kind is not garbage collected, the
// request's options, the object's finalizers, the Kind's default.
func propagation(ctx context.Context, rules apirest.RESTDeleteStrategy, m metav1.Object, options *metav1.DeleteOptions) (orphan, foreground bool) {
	policy := apirest.DeleteDependents
	if s, ok := rules.(apirest.GarbageCollectionDeleteStrategy); ok {
		policy = s.DefaultGarbageCollectionPolicy(ctx)
	}
	if policy == apirest.Unsupported {
		return false, false
	}
	if orphan := orphanDependents(options); orphan != nil {
		return *orphan, false
	}
	if options.PropagationPolicy != nil {
		switch *options.PropagationPolicy {
		case metav1.DeletePropagationOrphan:
			return true, false
		case metav1.DeletePropagationForeground:
			return false, true
		case metav1.DeletePropagationBackground:
			return false, false
		}
	}
	for _, f := range m.GetFinalizers() {
		switch f {
		case metav1.FinalizerOrphanDependents:
			return true, false
		case metav1.FinalizerDeleteDependents:
			return false, true
		}
	}
	return policy == apirest.OrphanDependents, false
}

// orphanDependents returns the deprecated option that propagationPolicy replaces.
func orphanDependents(options *metav1.DeleteOptions) *bool {
	//lint:ignore SA1019 the option is deprecated, and still served
	return options.OrphanDependents
}
