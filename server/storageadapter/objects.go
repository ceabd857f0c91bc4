package storageadapter

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// objects is the storage of one resource. Objects are in hub form, upstream's internal
// version, which is what its registries work on.
type objects struct {
	*Getter
	resource schema.GroupResource
}

func (o *objects) kind() *kind.Kind { return o.Kind(o.resource) }

var _ storage.Interface = &objects{}

// errNotOffered is the error of methods that upstream's watch cache calls and its registries,
// as they are used here, do not.
var errNotOffered = errors.New("watches are served from the store, not from here")

func (o *objects) Versioner() storage.Versioner { return storage.APIObjectVersioner{} }

func (o *objects) Watch(context.Context, string, storage.ListOptions) (watch.Interface, error) {
	return nil, errNotOffered
}

func (o *objects) RequestWatchProgress(context.Context) error { return errNotOffered }

func (o *objects) ReadinessCheck() error { return o.store.Healthy() }

// GetCurrentResourceVersion returns the revision of the newest change.
func (o *objects) GetCurrentResourceVersion(ctx context.Context) (uint64, error) {
	revision, err := o.store.Sync(ctx)
	return uint64(revision), err
}

// Stats counts the objects. Upstream publishes that as metrics, which the registries here do not do.
func (o *objects) Stats(ctx context.Context) (storage.Stats, error) {
	prefix := o.kind().Prefix()
	from, to := changelog.RangeOf(prefix)
	count, err := o.store.Current(prefix).Count(ctx, from, to)
	return storage.Stats{ObjectCount: count}, err
}

func (o *objects) EnableResourceSizeEstimation(storage.KeysFunc) error { return errNotOffered }

// CompactRevision returns the newest revision of which older versions may be missing.
func (o *objects) CompactRevision() int64 { return o.store.Floor() }

// Get reads one object: the most recent version, or, with resourceVersion "0", one that may be
// older.
func (o *objects) Get(ctx context.Context, key string, opts storage.GetOptions, out runtime.Object) error {
	if opts.ResourceVersion != "0" {
		if _, err := o.store.Sync(ctx); err != nil {
			return err
		}
	}
	obj, err := o.read(key, o.store.Get(key), opts.IgnoreNotFound)
	if err != nil {
		return err
	}
	return set(out, obj)
}

// GetList reads all objects below key that the predicate selects, without pages.
func (o *objects) GetList(ctx context.Context, key string, opts storage.ListOptions, list runtime.Object) error {
	revision, err := o.store.Sync(ctx)
	if err != nil {
		return err
	}
	items, err := itemsOf(list)
	if err != nil {
		return err
	}
	from, to := changelog.RangeOf(strings.TrimSuffix(key, "/") + "/")
	var bad error
	err = o.store.Current(o.kind().Prefix()).Scan(ctx, from, to, func(e *sqlstore.Entry) bool {
		bad = o.appendSelected(items, e, opts.Predicate)
		return bad == nil
	})
	if err = errors.Join(err, bad); err != nil {
		return err
	}
	return o.Versioner().UpdateList(list, uint64(revision), "", nil)
}

func itemsOf(list runtime.Object) (reflect.Value, error) {
	p, err := meta.GetItemsPtr(list)
	if err != nil {
		return reflect.Value{}, err
	}
	return conversion.EnforcePtr(p)
}

func (o *objects) appendSelected(items reflect.Value, e *sqlstore.Entry, selected storage.SelectionPredicate) error {
	obj, err := o.kind().Codec.Load(e.Value)
	if err != nil {
		return err
	}
	if selected.GetAttrs != nil {
		if ok, err := selected.Matches(obj); err != nil || !ok {
			return err
		}
	}
	items.Set(reflect.Append(items, reflect.ValueOf(obj).Elem()))
	return nil
}

// read returns the object of an entry. If there is no entry, it returns an empty object if
// that is allowed, else an error.
func (o *objects) read(key string, e *sqlstore.Entry, ignoreNotFound bool) (runtime.Object, error) {
	switch {
	case e != nil && e.Unreadable() != nil:
		return nil, storage.NewInternalError(e.Unreadable())
	case e != nil:
		return o.kind().Codec.Load(e.Value)
	case ignoreNotFound:
		return o.kind().Codec.New(), nil
	}
	return nil, storage.NewKeyNotFoundError(o.upstreamKey(key), 0)
}

// give sets out to the object of an entry.
func (o *objects) give(out runtime.Object, e *sqlstore.Entry) error {
	if out == nil {
		return nil
	}
	obj, err := o.kind().Codec.Load(e.Value)
	if err != nil {
		return err
	}
	return set(out, obj)
}

// set copies obj to out; both are pointers to the same type.
func set(out, obj runtime.Object) error {
	to, from := reflect.ValueOf(out), reflect.ValueOf(obj)
	if to.Type() != from.Type() {
		return fmt.Errorf("an object of type %T does not fit in one of type %T", obj, out)
	}
	to.Elem().Set(from.Elem())
	return nil
}

// upstreamKey returns the key as upstream's errors show it.
func (o *objects) upstreamKey(key string) string {
	return o.kind().UpstreamPrefix() + strings.TrimPrefix(key, o.kind().Prefix())
}
