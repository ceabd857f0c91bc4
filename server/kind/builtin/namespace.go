package builtin

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	api "k8s.io/kubernetes/pkg/apis/core"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// terminateNamespace marks a namespace that is being deleted. The namespace controller empties
// it and then removes its finalizer from the spec. Only then is the namespace itself deleted.
func terminateNamespace(obj runtime.Object) (held bool) {
	ns := obj.(*api.Namespace)
	ns.Status.Phase = api.NamespaceTerminating
	return len(ns.Spec.Finalizers) > 0
}

// namespaceFinished reports whether a namespace has neither finalizers in its spec nor those
// that every object may have.
func namespaceFinished(_ context.Context, _ string, obj, existing runtime.Object) bool {
	ns, old := obj.(*api.Namespace), existing.(*api.Namespace)
	grace := old.DeletionGracePeriodSeconds
	return len(ns.Spec.Finalizers) == 0 && len(ns.Finalizers) == 0 && (grace == nil || *grace == 0)
}

// namespaces is a client of namespaces for the strategies of resource claims: labels of a
// namespace allow admin access. The strategies call only Get; the embedded interface is nil.
type namespaces struct {
	typedcorev1.NamespaceInterface
	store *sqlstore.Store
}

func (n namespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Namespace, error) {
	if n.store == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	e := n.store.Get(lister.NamespacePrefix + name)
	if e == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	ns := &corev1.Namespace{}
	if err := json.Unmarshal(e.Value, ns); err != nil {
		return nil, fmt.Errorf("decode namespace %s: %w", name, err)
	}
	return ns, nil
}
