package control

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

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
		if reason, err := d.empty(ctx, name); err != nil {
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

// empty deletes all instances, as far as their finalizers let them go, and waits until they
// are gone. reason is a condition's.
func (d *Definitions) empty(ctx context.Context, name string) (reason string, err error) {
	k := d.storedKind(name)
	if k == nil {
		return "", nil // nothing is stored under a built-in resource's name
	}
	if err := d.config.DeleteAll(ctx, k); err != nil {
		return "InstanceDeletionFailed", fmt.Errorf("could not issue all deletes: %w", err)
	}
	if err := d.awaitEmpty(ctx, k); err != nil {
		return "InstanceDeletionCheck", fmt.Errorf("could not confirm zero CustomResources remaining: %w", err)
	}
	return "", nil
}

// storedKind is the Kind of the version that a definition's objects are stored in: through
// it they can be deleted also if none is served, or its conversion webhook is away.
func (d *Definitions) storedKind(name string) *kind.Kind {
	d.install.Lock()
	defer d.install.Unlock()
	if s := d.served[name]; s != nil {
		return s.stored
	}
	return nil
}

// left counts the instances.
func (d *Definitions) left(ctx context.Context, k *kind.Kind) (int64, error) {
	if _, err := d.config.Store.Sync(ctx); err != nil {
		return 0, err
	}
	from, to := sqlstore.RangeOf(k.Prefix())
	return d.config.Store.Current(k.Prefix()).Count(ctx, from, to)
}

// awaitEmpty waits until no instance is left.
func (d *Definitions) awaitEmpty(ctx context.Context, k *kind.Kind) error {
	ctx, cancel := context.WithTimeout(ctx, waitForInstances)
	defer cancel()
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		left, err := d.left(ctx, k)
		if err != nil || left == 0 {
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
