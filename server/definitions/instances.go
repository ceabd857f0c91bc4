package definitions

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
)

// waitForInstances is how long a deletion waits before it says in a condition that
// instances are still there, as upstream.
const waitForInstances = time.Minute

// deleteInstances ends a definition that has a deletionTimestamp: it deletes the instances
// first and then takes the finalizer away, so that the definition goes too.
func (d *Definitions) deleteInstances(ctx context.Context, name string) error {
	now := d.now(name)
	if now == nil || now.DeletionTimestamp == nil || !apihelpers.CRDHasFinalizer(now, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return d.sweep(ctx, name)
	}
	stored := d.storedKind(name)
	crd := now.DeepCopy()
	setTerminating(crd, apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
	if err := d.statuses.update(ctx, crd); reconcile.Overtaken(err) {
		return nil
	} else if err != nil {
		return err
	}
	if apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		if reason, err := d.empty(ctx, name); err != nil {
			setTerminating(crd, apiextensionsv1.ConditionTrue, reason, err.Error())
			if told := d.statuses.update(ctx, crd); !reconcile.Overtaken(told) {
				err = utilerrors.NewAggregate([]error{err, told})
			}
			return err
		}
		setTerminating(crd, apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
	} else {
		setTerminating(crd, apiextensionsv1.ConditionFalse, "NeverEstablished", "resource was never established")
	}
	apihelpers.CRDRemoveFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer)
	if err := d.statuses.update(ctx, crd); reconcile.Overtaken(err) {
		return nil
	} else if err != nil {
		return err
	}
	if stored != nil {
		d.ended.Store(name, ended{stored.Prefix(), time.Now().Add(sweepAfter)})
		d.instances.AddAfter(name, sweepAfter)
	}
	return nil
}

func setTerminating(crd *apiextensionsv1.CustomResourceDefinition, status apiextensionsv1.ConditionStatus, reason, message string) {
	apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: status, Reason: reason, Message: message,
	})
}

// empty deletes all instances, as far as their finalizers allow, and waits until they are
// gone. With an error it returns the reason that the condition gets.
func (d *Definitions) empty(ctx context.Context, name string) (reason string, err error) {
	k := d.storedKind(name)
	if k == nil {
		return "", nil // nothing is stored under a built-in resource's name
	}
	ctx, cancel := context.WithTimeout(ctx, waitForInstances)
	defer cancel()
	for pause := reconcile.First; ; pause = min(2*pause, reconcile.Most) {
		// Delete in each round: a create that was under way may have stored another instance.
		if err := d.config.DeleteAll(ctx, k); err != nil {
			return "InstanceDeletionFailed", fmt.Errorf("could not issue all deletes: %w", err)
		}
		left, err := d.left(ctx, k)
		if err == nil && left > 0 {
			err = lister.Pause(ctx, pause)
		}
		if err != nil {
			return "InstanceDeletionCheck", fmt.Errorf("could not confirm zero CustomResources remaining: %w", err)
		}
		if left == 0 {
			return "", nil
		}
	}
}

// sweepAfter is how long after the end of a definition its late instances are looked for. It
// is longer than other servers take to notice the end.
const sweepAfter = 5 * time.Second

// ended is a definition that has ended: the prefix of its instances, and when to look there
// again.
type ended struct {
	prefix string
	due    time.Time
}

// sweep deletes the late instances of a definition that this server has deleted: another
// server that had not noticed the end may have stored them after the count. They would come
// back with the next definition of that name. Instances of a definition that was deleted
// without its finalizer stay, as upstream.
func (d *Definitions) sweep(ctx context.Context, name string) error {
	v, _ := d.ended.Load(name)
	end, ok := v.(ended)
	if !ok || time.Now().Before(end.due) {
		return nil
	}
	if _, err := d.config.Store.Sync(ctx); err != nil {
		return err
	}
	var all []*sqlstore.Entry
	from, to := sqlstore.RangeOf(end.prefix)
	err := d.config.Store.Current(end.prefix).Scan(ctx, from, to, func(e *sqlstore.Entry) bool {
		all = append(all, e)
		return true
	})
	if err != nil {
		return err
	}
	// The next definition is read after the scan, so its instances are younger than itself.
	next := d.config.Store.Get(custom.DefinitionPrefix + name)
	for _, e := range all {
		if next != nil && e.CreateRevision > next.CreateRevision {
			continue
		}
		if err := d.config.Store.End(ctx, e); err != nil {
			return fmt.Errorf("delete what %s has left: %w", name, err)
		}
	}
	d.ended.Delete(name)
	return nil
}

// storedKind returns the Kind of the storage version of a definition. Instances can be
// deleted through it even if no version is served or the conversion webhook is away.
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
