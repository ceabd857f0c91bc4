package fairness

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	flowcontrolclient "k8s.io/client-go/kubernetes/typed/flowcontrol/v1"
	"k8s.io/kubernetes/pkg/registry/flowcontrol/ensurer"

	"github.com/plinth-io/plinth/sqlstore/sleep"
)

// keepEvery is how often the default objects are brought up to date, as upstream does.
const keepEvery = time.Minute

// defaults are the FlowSchemas and PriorityLevelConfigurations that every cluster has.
type defaults struct {
	schemas ensurer.ObjectOps[*flowcontrolv1.FlowSchema]
	levels  ensurer.ObjectOps[*flowcontrolv1.PriorityLevelConfiguration]
}

func newDefaults(client flowcontrolclient.FlowcontrolV1Interface, i *informers) defaults {
	return defaults{
		schemas: ensurer.NewFlowSchemaOps(client.FlowSchemas(), i.schemaLister()),
		levels:  ensurer.NewPriorityLevelConfigurationOps(client.PriorityLevelConfigurations(), i.levelLister()),
	}
}

// Ensure makes the default objects that are missing, brings those that nobody has changed up to
// date with this release, and removes those of earlier releases. Several servers may do so at
// once. It is done when the server starts, and then by Run.
func (c *Controller) Ensure(ctx context.Context) error {
	if c.o.Kinds.Lookup(flowcontrolv1.GroupName, "v1", "flowschemas") == nil || c.o.Kinds.Lookup(flowcontrolv1.GroupName, "v1", "prioritylevelconfigurations") == nil {
		return nil // switched off: upstream then works with the mandatory objects alone
	}
	if err := c.defaults.ensure(ctx); err != nil {
		return fmt.Errorf("default FlowSchemas and PriorityLevelConfigurations: %w", err)
	}
	return nil
}

func (d *defaults) ensure(ctx context.Context) error {
	err := ensureAll(ctx, d.levels, bootstrap.SuggestedPriorityLevelConfigurations, bootstrap.MandatoryPriorityLevelConfigurations)
	if err != nil {
		return err
	}
	if err := ensureAll(ctx, d.schemas, bootstrap.SuggestedFlowSchemas, bootstrap.MandatoryFlowSchemas); err != nil {
		return err
	}
	if err := ensurer.RemoveUnwantedObjects(ctx, d.schemas, slices.Concat(bootstrap.MandatoryFlowSchemas, bootstrap.SuggestedFlowSchemas)); err != nil {
		return err
	}
	return ensurer.RemoveUnwantedObjects(ctx, d.levels, slices.Concat(bootstrap.MandatoryPriorityLevelConfigurations, bootstrap.SuggestedPriorityLevelConfigurations))
}

// ensureAll works on all objects of a type at once, so that new ones share one or two commits.
func ensureAll[T interface {
	comparable
	metav1.Object
	runtime.Object
}](ctx context.Context, ops ensurer.ObjectOps[T], suggested, mandatory []T) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, o := range suggested {
		group.Go(func() error {
			return ensurer.EnsureConfiguration(ctx, ops, o, ensurer.NewSuggestedEnsureStrategy[T]())
		})
	}
	for _, o := range mandatory {
		group.Go(func() error {
			return ensurer.EnsureConfiguration(ctx, ops, o, ensurer.NewMandatoryEnsureStrategy[T]())
		})
	}
	return group.Wait()
}

// keep brings the default objects up to date until ctx ends.
func (c *Controller) keep(ctx context.Context) {
	for failed, was := false, unreadable(c.o.Store); sleep.For(ctx, keepEvery) == nil; {
		err := c.Ensure(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			c.o.Logger.Warn("objects of priority and fairness could not be kept up to date; it is tried again", "err", err)
		}
		failed = err != nil
		// Upstream drops a level that was deleted when its last request has ended, and does not
		// hear of the end of requests that have passed by its queues.
		// It does not hear either of objects that cannot be read, or can be read again.
		if now := unreadable(c.o.Store); c.informers.levels.deleted.Swap(false) || now != was {
			was = now
			c.informers.levels.again()
		}
	}
}
