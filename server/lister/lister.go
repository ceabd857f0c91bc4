// Package lister reads objects from the store in the way that client-go's listers read
// them from an informer's cache. There is no second copy of the objects and nothing that
// has to be synced: the store is never behind what this process has acknowledged.
package lister

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"weak"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// New returns a cache.Indexer of the objects whose keys begin with prefix, as *T, for the
// constructors of client-go's listers. T is the Go type of the version that is stored. The
// objects are shared: nobody may write to them. It has the methods that listers call:
// GetByKey, which takes a name or NAMESPACE/NAME, List, and the index of namespaces.
func New[T any](store *sqlstore.Store, prefix string) cache.Indexer {
	return Of(store, prefix, func(e *sqlstore.Entry) (any, error) { return Decode[T](e) })
}

// Of is New with a decode function, which is called anew each time.
func Of(store *sqlstore.Store, prefix string, decode func(*sqlstore.Entry) (any, error)) cache.Indexer {
	return &indexer{store: store, prefix: prefix, decode: decode}
}

// Get returns the object whose key is prefix and key, which is shared: nobody may write to
// it; nil if it is not there or cannot be read.
func Get[T any](store *sqlstore.Store, prefix, key string) *T {
	e := store.Get(prefix + key)
	if e == nil {
		return nil
	}
	object, err := Decode[T](e)
	if err != nil {
		return nil
	}
	return object
}

type indexer struct {
	cache.Indexer // nil: stands for the methods that listers do without
	store         *sqlstore.Store
	prefix        string
	decode        func(*sqlstore.Entry) (any, error)
}

// GetByKey returns one object.
func (i *indexer) GetByKey(key string) (item any, exists bool, err error) {
	e := i.store.Get(i.prefix + key)
	if e == nil {
		return nil, false, nil
	}
	object, err := i.decode(e)
	return object, err == nil, err
}

// List returns all objects by their keys, but for those that cannot be read.
func (i *indexer) List() []any { return i.under(i.prefix) }

// Index returns the objects that are in the same namespace as obj.
func (i *indexer) Index(name string, obj any) ([]any, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	return i.ByIndex(name, m.GetNamespace())
}

// ByIndex returns the objects of a namespace, but for those that cannot be read.
func (i *indexer) ByIndex(name, namespace string) ([]any, error) {
	if name != cache.NamespaceIndex {
		return nil, fmt.Errorf("there is no index %q", name)
	}
	return i.under(i.prefix + namespace + "/"), nil
}

// IndexKeys returns the keys of the objects of a namespace, as GetByKey takes them.
func (i *indexer) IndexKeys(name, namespace string) (keys []string, err error) {
	if name != cache.NamespaceIndex {
		return nil, fmt.Errorf("there is no index %q", name)
	}
	from, to := changelog.RangeOf(i.prefix + namespace + "/")
	err = i.store.Current(i.prefix).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		keys = append(keys, strings.TrimPrefix(e.Key, i.prefix))
		return true
	})
	return keys, err
}

// GetIndexers returns the index of namespaces.
func (i *indexer) GetIndexers() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

func (i *indexer) under(prefix string) (all []any) {
	from, to := changelog.RangeOf(prefix)
	// In memory: there is no error.
	_ = i.store.Current(i.prefix).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		if object, err := i.decode(e); err == nil {
			all = append(all, object)
		}
		return true
	})
	return all
}

// Having returns those of objects for which f has a value: what an index finds, without keeping one.
func Having(objects []any, f cache.IndexFunc, value string) (found []any, err error) {
	for _, object := range objects {
		values, err := f(object)
		if err != nil {
			return nil, err
		}
		if slices.Contains(values, value) {
			found = append(found, object)
		}
	}
	return found, nil
}

// All returns the objects of resource in the order of their keys, but for those that cannot
// be read; for callers that change some of them meanwhile.
func All[T any](store *sqlstore.Store, resource string) (all []*T) {
	Each(store, resource, resource, func(object *T) { all = append(all, object) })
	return all
}

// Each calls f with the objects of resource whose keys begin with prefix, in the order of
// their keys, but for those that cannot be read. As long as an object is not changed, it
// is the same pointer each time.
func Each[T any](store *sqlstore.Store, resource, prefix string, f func(object *T)) {
	from, to := changelog.RangeOf(prefix)
	// In memory: there is no error.
	_ = store.Current(resource).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		if object, err := Decode[T](e); err == nil {
			f(object)
		}
		return true
	})
}

// Unreadable returns an error if there are objects whose keys begin with prefix, all of one resource, that cannot be
// decrypted or are damaged, as far as that is known (sqlstore.Store.Unreadable). Most else here leaves such
// objects out, which is wrong for objects that forbid something: those are read by Everything.
func Unreadable(store *sqlstore.Store, prefix string) error {
	if bad := store.Unreadable(prefix); bad != nil {
		return bad
	}
	return nil
}

// Everything is All for objects that forbid something: an error says that one of them cannot be read.
func Everything[T any](store *sqlstore.Store, resource string) (all []*T, err error) {
	from, to := changelog.RangeOf(resource)
	scanned := store.Current(resource).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		object, wrong := Decode[T](e)
		if wrong != nil {
			err = fmt.Errorf("unable to decode key %q", e.Key)
			return false
		}
		all = append(all, object)
		return true
	})
	if scanned != nil {
		err = scanned
	}
	if err != nil {
		return nil, err
	}
	return all, nil
}

// decodedKey is where an entry keeps its decoded object.
type decodedKey[T any] struct{}

// Decode returns the object of an entry, which is shared: nobody may write to it.
func Decode[T any](e *sqlstore.Entry) (*T, error) {
	v := e.Memo(decodedKey[T]{}, func() any {
		object, err := DecodeAnew[T](e)
		if err != nil {
			return err
		}
		return object
	})
	if err, ok := v.(error); ok {
		return nil, err
	}
	return v.(*T), nil
}

// decodedWhileUsed is where an entry remembers its decoded object for as long as somebody has it.
type decodedWhileUsed[T any] struct {
	object atomic.Pointer[weak.Pointer[T]]
}

// DecodeWhileUsed is Decode for an object that is read often, but only now and then: the memory of the object is free
// again when no caller has it any more.
func DecodeWhileUsed[T any](e *sqlstore.Entry) (*T, error) {
	d := e.Memo(decodedKey[decodedWhileUsed[T]]{}, func() any { return new(decodedWhileUsed[T]) }).(*decodedWhileUsed[T])
	if p := d.object.Load(); p != nil {
		if object := p.Value(); object != nil {
			return object, nil
		}
	}
	object, err := DecodeAnew[T](e)
	if err != nil {
		return nil, err
	}
	p := weak.Make(object)
	d.object.Store(&p)
	return object, nil
}

// DecodeAnew returns the object of an entry. It is the caller's own.
func DecodeAnew[T any](e *sqlstore.Entry) (*T, error) {
	if err := e.Unreadable(); err != nil {
		return nil, err
	}
	object := new(T)
	return object, kjson.UnmarshalCaseSensitivePreserveInts(e.Value, object)
}
