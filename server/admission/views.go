package admission

import (
	"reflect"

	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// view is an informer of the objects under prefix, as *T. It tells its handler of changes
// when notify is called.
type view[T any] struct {
	informer
	store   *sqlstore.Store
	prefix  string
	handler cache.ResourceEventHandler
	seen    map[*T]bool // objects that the handler knows
}

func newView[T any](store *sqlstore.Store, prefix string) *view[T] {
	return &view[T]{informer: informer{indexer: lister.New[T](store, prefix)}, store: store, prefix: prefix}
}

// AddEventHandler takes the only handler. The view is its registration, too.
func (v *view[T]) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	v.handler = h
	return v, nil
}

// now returns the current objects. An object that has changed is another pointer. An error says that one cannot
// be read.
func (v *view[T]) now() (map[*T]bool, error) {
	all, err := lister.Everything[T](v.store, v.prefix)
	now := map[*T]bool{}
	for _, object := range all {
		now[object] = true
	}
	return now, err
}

// notify tells the handler what has changed since the last call. Calls must not overlap.
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

// factory returns a factory in which v is the informer of T.
func (v *view[T]) factory() *factory {
	return &factory{store: v.store, own: map[reflect.Type]cache.SharedIndexInformer{reflect.TypeFor[*T](): v}}
}
