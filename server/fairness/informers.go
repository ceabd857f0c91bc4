package fairness

import (
	"context"
	"sync"
	"sync/atomic"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientinformers "k8s.io/client-go/informers"
	flowcontrolinformers "k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/internalinterfaces"
	flowcontrollisters "k8s.io/client-go/listers/flowcontrol/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/sleep"
)

var (
	schemaPrefix = object.Prefix(flowcontrolv1.GroupName, "flowschemas")
	levelPrefix  = object.Prefix(flowcontrolv1.GroupName, "prioritylevelconfigurations")
)

// informers stands in for client-go's factory of shared informers: its two informers read the
// store, so that there is no second copy of the objects, and nothing lags behind a write. The
// embedded interface is nil and stands for what upstream does not call.
type informers struct {
	clientinformers.SharedInformerFactory
	schemas, levels *informer
}

func newInformers(store *sqlstore.Store) *informers {
	return &informers{
		schemas: &informer{store: store, prefix: schemaPrefix, decode: asAny[flowcontrolv1.FlowSchema]},
		levels:  &informer{store: store, prefix: levelPrefix, decode: asAny[flowcontrolv1.PriorityLevelConfiguration]},
	}
}

// unreadable says that a FlowSchema or a PriorityLevelConfiguration cannot be read. Then nobody knows which
// requests they keep back, and as in kube-apiserver, which cannot list them either, the mandatory ones alone are in
// force: all requests but those that are exempt share one level.
func unreadable(store *sqlstore.Store) bool {
	return store.Unreadable(schemaPrefix) != nil || store.Unreadable(levelPrefix) != nil
}

// whole is an indexer whose lists are empty while an object cannot be read.
type whole struct {
	cache.Indexer
	store *sqlstore.Store
}

// List returns all objects, or none.
func (w whole) List() []any {
	if unreadable(w.store) {
		return nil
	}
	return w.Indexer.List()
}

func asAny[T any](e *sqlstore.Entry) (any, error) { return lister.Decode[T](e) }

// Flowcontrol returns the typed informers, which ask InformerFor for theirs.
func (i *informers) Flowcontrol() flowcontrolinformers.Interface {
	return flowcontrolinformers.New(i, "", nil)
}

// InformerFor returns the informer of one of the two types.
func (i *informers) InformerFor(object runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	if _, ok := object.(*flowcontrolv1.FlowSchema); ok {
		return i.schemas
	}
	return i.levels
}

func (i *informers) schemaLister() flowcontrollisters.FlowSchemaLister {
	return flowcontrollisters.NewFlowSchemaLister(i.schemas.GetIndexer())
}

func (i *informers) levelLister() flowcontrollisters.PriorityLevelConfigurationLister {
	return flowcontrollisters.NewPriorityLevelConfigurationLister(i.levels.GetIndexer())
}

// run tells upstream of changes until ctx ends.
func (i *informers) run(ctx context.Context) {
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { i.schemas.run(ctx) })
	both.Go(func() { i.levels.run(ctx) })
}

// informer is one of them. The embedded interface is nil, as above.
type informer struct {
	cache.SharedIndexInformer
	store  *sqlstore.Store
	prefix string
	decode func(*sqlstore.Entry) (any, error)
	to     cache.ResourceEventHandler // set before run
	synced atomic.Bool

	deleted atomic.Bool // an object was deleted since keep looked
}

func (i *informer) GetIndexer() cache.Indexer {
	return whole{lister.Of(i.store, i.prefix, i.decode), i.store}
}
func (i *informer) HasSynced() bool { return i.synced.Load() }

// AddEventHandler is called once, before run.
func (i *informer) AddEventHandler(to cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.to = to
	return nil, nil
}

// run follows the store. If changes were lost, it begins anew: upstream then looks at all objects,
// as it does after every event.
func (i *informer) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := lister.Follow(ctx, i.store, i.prefix, func() { i.synced.Store(true) }, i.tell)
		if err == nil || sleep.For(ctx, lister.RetryRead) != nil {
			return
		}
	}
}

// tell passes a change on. An object that cannot be read is skipped, as the listers do.
func (i *informer) tell(ev *sqlstore.Event) {
	object, err := i.decode(ev.Entry)
	switch {
	case err != nil:
	case ev.Type == sqlstore.Delete:
		i.deleted.Store(true)
		i.to.OnDelete(object)
	case ev.Prev == nil:
		i.to.OnAdd(object, !i.synced.Load())
	default:
		if before, err := i.decode(ev.Prev); err == nil {
			i.to.OnUpdate(before, object)
		}
	}
}

// again has upstream look at all objects.
func (i *informer) again() { i.to.OnDelete(cache.DeletedFinalStateUnknown{}) }
