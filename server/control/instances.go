package control

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/metadata"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// waitForInstances is how long a deletion waits before it says in a condition that
// instances are still there, as upstream.
const waitForInstances = time.Minute

// deleteInstances deletes a definition that has been marked: first its instances, then,
// by taking the finalizer away, itself.
func (d *Definitions) deleteInstances(ctx context.Context, name string) error {
	now := d.now(name)
	if now == nil || now.DeletionTimestamp == nil || !apihelpers.CRDHasFinalizer(now, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return nil
	}
	crd := now.DeepCopy()
	setTerminating(crd, apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	if err := d.statuses.update(ctx, crd); overtaken(err) {
		return nil
	} else if err != nil {
		return err
	}
	if apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		if reason, err := d.empty(ctx, crd); err != nil {
			setTerminating(crd, apiextensionsv1.ConditionTrue, reason, err.Error())
			return utilerrors.NewAggregate([]error{err, d.statuses.update(ctx, crd)})
		}
		setTerminating(crd, apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
	} else {
		setTerminating(crd, apiextensionsv1.ConditionFalse, "NeverEstablished", "resource was never established")
	}
	apihelpers.CRDRemoveFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer)
	if err := d.statuses.update(ctx, crd); !overtaken(err) {
		return err
	}
	return nil
}

func setTerminating(crd *apiextensionsv1.CustomResourceDefinition, status apiextensionsv1.ConditionStatus, reason, message string) {
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message,
	})
}

// empty deletes all instances through the API, so that admission and finalizers have their
// say, and waits until they are gone. reason is a condition's.
func (d *Definitions) empty(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) (reason string, err error) {
	k := d.anyKind(crd)
	if k == nil {
		// Either nothing is stored under a built-in resource's name, or no version is
		// served and nothing can be deleted by its rules.
		return "", nil
	}
	namespaces, err := d.namespacesOf(ctx, k)
	if err != nil {
		return "InstanceDeletionFailed", fmt.Errorf("could not list instances: %w", err)
	}
	api, err := metadata.NewForConfig(quiet(d.config.Client))
	if err != nil {
		return "InstanceDeletionFailed", err
	}
	resource := api.Resource(schema.GroupVersionResource{Group: k.Group, Version: k.Versions[0].Name, Resource: k.Resource})
	var errs []error
	for namespace := range namespaces {
		deleter := metadata.ResourceInterface(resource)
		if namespace != "" {
			deleter = resource.Namespace(namespace)
		}
		if err := deleter.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			errs = append(errs, err)
		}
	}
	if err := utilerrors.NewAggregate(errs); err != nil {
		return "InstanceDeletionFailed", fmt.Errorf("could not issue all deletes: %w", err)
	}
	if err := d.awaitEmpty(ctx, k); err != nil {
		return "InstanceDeletionCheck", fmt.Errorf("could not confirm zero CustomResources remaining: %w", err)
	}
	return "", nil
}

// anyKind is one of the Kinds through which a definition's objects can be reached.
func (d *Definitions) anyKind(crd *apiextensionsv1.CustomResourceDefinition) *kind.Kind {
	for _, k := range d.config.Kinds.Set().Kinds {
		if k.Group == crd.Spec.Group && k.Resource == crd.Status.AcceptedNames.Plural && k.Custom() {
			return k
		}
	}
	return nil
}

// namespacesOf are the namespaces that have instances; the empty one stands for those of a
// cluster-scoped resource.
func (d *Definitions) namespacesOf(ctx context.Context, k *kind.Kind) (sets.Set[string], error) {
	if _, err := d.config.Store.Sync(ctx); err != nil {
		return nil, err
	}
	namespaces := sets.New[string]()
	_, err := readCurrent(ctx, d.config.Store, k.Prefix(), func(ev *sqlstore.Event) {
		namespace, _ := k.SplitKey(ev.Entry.Key)
		namespaces.Insert(namespace)
	})
	return namespaces, err
}

// awaitEmpty waits until no instance is left.
func (d *Definitions) awaitEmpty(ctx context.Context, k *kind.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, waitForInstances)
	defer cancel()
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		left, err := d.namespacesOf(ctx, k)
		if err != nil || len(left) == 0 {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}
