package admit

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// view stands for an informer of the objects under prefix, as *T. It reads the store, so
// that it has no copy of the objects, no goroutine and nothing to wait for; that there was
// a change it says when it is told to. The embedded interface is nil and stands for the
// methods that admission plugins do not use.
type view[T any] struct {
	cache.SharedIndexInformer
	store   *sqlstore.Store
	prefix  string
	handler cache.ResourceEventHandler
	seen    map[*T]bool // what the handler knows
}

func newView[T any](store *sqlstore.Store, prefix string) *view[T] {
	return &view[T]{store: store, prefix: prefix}
}

func (v *view[T]) GetIndexer() cache.Indexer { return lister.New[T](v.store, v.prefix) }
func (v *view[T]) HasSynced() bool           { return true }

// AddEventHandler takes the one handler that there is; the view is its registration too.
func (v *view[T]) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	v.handler = h
	return v, nil
}

// now returns the objects that there are. One that has changed is another object.
func (v *view[T]) now() map[*T]bool {
	now := map[*T]bool{}
	lister.Each(v.store, v.prefix, v.prefix, func(object *T) { now[object] = true })
	return now
}

// notify tells the handler of what is different from the last time. Calls must not overlap.
func (v *view[T]) notify(now map[*T]bool) {
	for object := range v.seen {
		if !now[object] {
			v.handler.OnDelete(object)
		}
	}
	for object := range now {
		if !v.seen[object] {
			v.handler.OnAdd(object, false)
		}
	}
	v.seen = now
}

// views stands for the factory of informers.
type views struct {
	informers.SharedInformerFactory
	byType map[reflect.Type]cache.SharedIndexInformer
}

func newViews[C any](store *sqlstore.Store, configurations *view[C]) *views {
	return &views{byType: map[reflect.Type]cache.SharedIndexInformer{
		reflect.TypeFor[*corev1.Namespace](): newView[corev1.Namespace](store, "/registry/core/namespaces/"),
		reflect.TypeFor[*C]():                configurations,
	}}
}

func (f *views) InformerFor(obj runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.byType[reflect.TypeOf(obj)]
}

func (f *views) Core() core.Interface { return core.New(f, "", nil) }

func (f *views) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, "", nil)
}
