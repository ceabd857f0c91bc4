package admit

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/plinth-io/plinth/sqlstore"
)

// Lifecycle keeps objects out of namespaces that are not there or on their way out, and
// keeps the namespaces that every cluster has from being deleted. It stands for upstream's
// NamespaceLifecycle (k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle) and
// answers as that does. Where upstream asks an informer and waits for it, Lifecycle reads
// the store, which is never behind what this process has acknowledged; only a namespace
// that is missing there is looked for in the database, in case another replica made it.
type Lifecycle struct {
	store *sqlstore.Store
}

var _ admission.MutationInterface = &Lifecycle{}

// NewLifecycle returns the plugin for the objects of store.
func NewLifecycle(store *sqlstore.Store) *Lifecycle { return &Lifecycle{store} }

// Handles says that reading and connecting are nothing to Lifecycle.
func (l *Lifecycle) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update || op == admission.Delete
}

var (
	namespaceKind = corev1.SchemeGroupVersion.WithKind("Namespace").GroupKind()
	// An answer to this review that depends on the namespace would tell people which
	// namespaces there are, so it is given in any.
	localReview = schema.GroupResource{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}
)

// Admit refuses what does not go with the namespace's life. Like upstream it does so in
// the mutating pass, before other plugins spend work on the object.
func (l *Lifecycle) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	op := a.GetOperation()
	if a.GetKind().GroupKind() == namespaceKind {
		if op == admission.Delete && immortal(a.GetName()) {
			return errors.NewForbidden(a.GetResource().GroupResource(), a.GetName(), fmt.Errorf("this namespace may not be deleted"))
		}
		return nil
	}
	if a.GetNamespace() == "" || op == admission.Delete || a.GetResource().GroupResource() == localReview {
		return nil
	}
	e, err := l.namespace(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	if op == admission.Create && terminating(e) {
		return terminatingError(a)
	}
	return nil
}

// immortal namespaces are upstream's; kube-node-lease is not one of them.
func immortal(name string) bool {
	return name == metav1.NamespaceDefault || name == metav1.NamespaceSystem || name == metav1.NamespacePublic
}

func (l *Lifecycle) namespace(ctx context.Context, name string) (*sqlstore.Entry, error) {
	key := "/registry/core/namespaces/" + name
	if e := l.store.Get(key); e != nil {
		return e, nil
	}
	if _, err := l.store.Sync(ctx); err != nil {
		return nil, err
	}
	if e := l.store.Get(key); e != nil {
		return e, nil
	}
	return nil, errors.NewNotFound(corev1.Resource("namespaces"), name)
}

// phaseKey is where an entry remembers what terminating found.
type phaseKey struct{}

// terminating is on the path of every create, so an entry is parsed for it only once.
func terminating(e *sqlstore.Entry) bool {
	return e.Memo(phaseKey{}, func() any {
		var ns struct {
			Status struct {
				Phase corev1.NamespacePhase `json:"phase"`
			} `json:"status"`
		}
		return json.Unmarshal(e.JSON, &ns) == nil && ns.Status.Phase == corev1.NamespaceTerminating
	}).(bool)
}

// terminatingError has a cause by which controllers know that trying again is no use.
func terminatingError(a admission.Attributes) error {
	namespace := a.GetNamespace()
	err := admission.NewForbidden(a, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
	if status, ok := err.(*errors.StatusError); ok {
		status.ErrStatus.Details.Causes = append(status.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    corev1.NamespaceTerminatingCause,
			Message: fmt.Sprintf("namespace %s is being terminated", namespace),
			Field:   "metadata.namespace",
		})
	}
	return err
}
