package definitions

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/custom"
	"github.com/plinth-io/plinth/server/reconcile"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// The reasons of the condition Terminating while instances cannot be deleted.
const (
	deletionFailed    = "InstanceDeletionFailed"
	deletionUncertain = "InstanceDeletionCheck"
)

// maxMessagePause is the longest pause between two writes of a failure whose message changes: a
// definition may have a megabyte.
const maxMessagePause = 10 * time.Minute

// errOvertaken has a definition tried again that somebody changed meanwhile. The change itself
// may be another server's of the condition Terminating, which wakes nobody.
var errOvertaken = fmt.Errorf("the definition was changed meanwhile: %w", reconcile.ErrReported)

// deleteInstances ends a definition that has a deletionTimestamp: it deletes the instances
// first and then takes the finalizer away, so that the definition goes too. A try that fails
// writes the condition once, and again if it fails in another way. Upstream writes twice for
// each try: that the deletion is in progress, and that it has failed.
func (d *Definitions) deleteInstances(ctx context.Context, name string) error {
	now := d.now(name)
	if now == nil || now.DeletionTimestamp == nil || !apihelpers.CRDHasFinalizer(now, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return d.sweep(ctx, name)
	}
	stored := d.storedKind(name)
	crd := now.DeepCopy()
	if !hasFailed(crd) {
		setTerminating(crd, apiextensionsv1.ConditionTrue, "InstanceDeletionInProgress", "CustomResource deletion is in progress")
		if err := d.write(ctx, crd); err != nil {
			return orGone(err)
		}
	}
	if apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established) {
		if reason, err := d.empty(ctx, name); err != nil {
			return d.tellFailure(ctx, crd, reason, err)
		}
		setTerminating(crd, apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances")
	} else {
		setTerminating(crd, apiextensionsv1.ConditionFalse, "NeverEstablished", "resource was never established")
	}
	apihelpers.CRDRemoveFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer)
	if err := d.write(ctx, crd); err != nil {
		return orGone(err)
	}
	if stored != nil {
		d.ended.Store(name, ended{stored.Prefix(), time.Now().Add(sweepAfter)})
		d.instances.AddAfter(name, sweepAfter)
	}
	return nil
}

// write writes the status and the finalizers of a definition.
func (d *Definitions) write(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition) error {
	err := d.statuses.update(ctx, crd)
	if apierrors.IsConflict(err) {
		return errOvertaken
	}
	return err
}

// orGone takes the end of a definition for success.
func orGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// hasFailed tells whether the condition says that instances could not be deleted.
func hasFailed(crd *apiextensionsv1.CustomResourceDefinition) bool {
	c := apihelpers.FindCRDCondition(crd, apiextensionsv1.Terminating)
	return c != nil && c.Status == apiextensionsv1.ConditionTrue && (c.Reason == deletionFailed || c.Reason == deletionUncertain)
}

// tellFailure says in the condition why instances could not be deleted, unless it says so already,
// or in other words. It returns the error of the deletion.
func (d *Definitions) tellFailure(ctx context.Context, crd *apiextensionsv1.CustomResourceDefinition, reason string, err error) error {
	told := apihelpers.FindCRDCondition(crd, apiextensionsv1.Terminating)
	if told.Reason == reason {
		e := d.config.Store.Get(custom.DefinitionPrefix + crd.Name)
		if told.Message == err.Error() || e != nil && !reconcile.MessageDue(told.LastTransitionTime.Time, time.UnixMilli(e.At), time.Now(), maxMessagePause) {
			return err
		}
	}
	setTerminating(crd, apiextensionsv1.ConditionTrue, reason, err.Error())
	if failed := d.write(ctx, crd); orGone(failed) != nil {
		err = utilerrors.NewAggregate([]error{err, failed})
	}
	return err
}

// onlyTerminating tells whether a change of a definition that is being deleted is one of the
// condition Terminating alone. Who deletes its instances has most likely made the change, and
// would be woken by each of its own writes. Upstream ignores the same changes.
func onlyTerminating(ev *sqlstore.Event) bool {
	if ev.Type == sqlstore.Delete || ev.Prev == nil {
		return false
	}
	was, err := custom.DefinitionOf(ev.Prev)
	if err != nil {
		return false
	}
	is, err := custom.DefinitionOf(ev.Entry)
	if err != nil || was.CRD.DeletionTimestamp == nil || was.CRD.Generation != is.CRD.Generation {
		return false
	}
	return equality.Semantic.DeepEqual(withoutTerminating(was.CRD), withoutTerminating(is.CRD))
}

func withoutTerminating(crd *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	crd = crd.DeepCopy()
	crd.ResourceVersion, crd.ManagedFields = "", nil
	apihelpers.RemoveCRDCondition(crd, apiextensionsv1.Terminating)
	return crd
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
	// Only the wait has a time limit, as upstream: if deletes had it too, the reason would be another one
	// each time, and each would be written.
	wait, cancel := context.WithTimeout(ctx, d.config.WaitForInstances)
	defer cancel()
	for pause := reconcile.First; ; pause = min(2*pause, reconcile.Most) {
		// Delete in each round: a create that was under way may have stored another instance.
		if err := d.config.DeleteAll(ctx, k); err != nil {
			return deletionFailed, fmt.Errorf("could not issue all deletes: %w", err)
		}
		left, err := d.left(ctx, k)
		if err == nil && left > 0 {
			err = sleep.For(wait, pause)
		}
		if err != nil {
			return deletionUncertain, fmt.Errorf("could not confirm zero CustomResources remaining: %w", err)
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
	from, to := changelog.RangeOf(end.prefix)
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
	from, to := changelog.RangeOf(k.Prefix())
	return d.config.Store.Current(k.Prefix()).Count(ctx, from, to)
}
