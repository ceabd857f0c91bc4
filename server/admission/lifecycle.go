package admission

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiadmission "k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// Lifecycle refuses objects in namespaces that do not exist or are terminating, and refuses
// to delete the namespaces that every cluster has. It replaces upstream's
// NamespaceLifecycle (k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle) and gives
// the same answers. Where upstream asks an informer and waits for it, Lifecycle reads
// the store, which is never behind what this process has acknowledged. Only a namespace
// that is missing there is looked for in the database, in case another replica made it.
type Lifecycle struct {
	store *sqlstore.Store
}

var _ apiadmission.MutationInterface = &Lifecycle{}

// NewLifecycle returns the plugin for the objects of store.
func NewLifecycle(store *sqlstore.Store) *Lifecycle { return &Lifecycle{store} }

// Handles returns true for creates, updates and deletes.
func (l *Lifecycle) Handles(op apiadmission.Operation) bool {
	return op == apiadmission.Create || op == apiadmission.Update || op == apiadmission.Delete
}

var (
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()
	// This review is answered in any namespace: a refusal would tell callers which
	// namespaces exist.
	localReview = schema.GroupResource{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}
)

// Admit refuses writes that the state of the namespace rules out. Like upstream it does so
// in the mutating pass, before other plugins spend work on the object.
func (l *Lifecycle) Admit(ctx context.Context, a apiadmission.Attributes, _ apiadmission.ObjectInterfaces) error {
	op := a.GetOperation()
	if a.GetKind().GroupKind() == namespaceKind {
		if op == apiadmission.Delete && immortal(a.GetName()) {
			return apierrors.NewForbidden(a.GetResource().GroupResource(), a.GetName(), fmt.Errorf("this namespace may not be deleted"))
		}
		return nil
	}
	if a.GetNamespace() == "" || op == apiadmission.Delete || a.GetResource().GroupResource() == localReview {
		return nil
	}
	e, err := l.namespace(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	if op != apiadmission.Create {
		return nil
	}
	if reason := e.Unreadable(); reason != nil && !unasked(ctx) { // it may be terminating
		return notReady(reason)
	}
	if terminating(e) {
		return terminatingError(a)
	}
	return nil
}

// immortal tells which namespaces may not be deleted. They are upstream's; kube-node-lease is
// not one of them.
func immortal(name string) bool {
	return name == metav1.NamespaceDefault || name == metav1.NamespaceSystem || name == metav1.NamespacePublic
}

func (l *Lifecycle) namespace(ctx context.Context, name string) (*sqlstore.Entry, error) {
	key := lister.NamespacePrefix + name
	if e := l.store.Get(key); e != nil {
		return e, nil
	}
	if _, err := l.store.Sync(ctx); err != nil {
		return nil, err
	}
	if e := l.store.Get(key); e != nil {
		return e, nil
	}
	return nil, apierrors.NewNotFound(corev1.Resource("namespaces"), name)
}

// phaseKey is where an entry remembers what terminating found.
type phaseKey struct{}

// terminating tells whether a namespace is terminating. It is asked at every create, so an
// entry is parsed only once.
func terminating(e *sqlstore.Entry) bool {
	return e.Memo(phaseKey{}, func() any {
		var ns struct {
			Status struct {
				Phase corev1.NamespacePhase `json:"phase"`
			} `json:"status"`
		}
		return json.Unmarshal(e.Value, &ns) == nil && ns.Status.Phase == corev1.NamespaceTerminating
	}).(bool)
}

// terminatingError has a cause that tells controllers not to try again.
func terminatingError(a apiadmission.Attributes) error {
	namespace := a.GetNamespace()
	err := apiadmission.NewForbidden(a, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	if status, ok := err.(*apierrors.StatusError); ok {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", namespace),
			Field:   "metadata.namespace",
		})
	}
	return err
}
