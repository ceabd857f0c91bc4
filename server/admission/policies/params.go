package policies

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// params returns the objects of a paramKind. The error says that no such kind is served.
func (o *Options) params(gvk schema.GroupVersionKind) (informers.GenericInformer, meta.RESTScope, error) {
	for _, k := range o.Kinds.Set().Kinds {
		if k.Group != gvk.Group || k.Kind != gvk.Kind || k.Version(gvk.Version) == nil {
			continue
		}
		p := &params{store: o.Store, kind: k, version: gvk.Version, prefix: k.Prefix()}
		if k.Namespaced {
			return p, meta.RESTScopeNamespace, nil
		}
		return p, meta.RESTScopeRoot, nil
	}
	return nil, nil, fmt.Errorf("failed to find resource referenced by paramKind: '%v'", gvk)
}

// params are the objects of a kind in one of its versions, read from the store. It stands for
// the informer of the objects, and for its listers.
type params struct {
	cache.SharedIndexInformer // nil: stands for the methods that upstream's dispatchers do without
	store                     *sqlstore.Store
	kind                      *kind.Kind
	version                   string
	prefix                    string // of the keys
}

var (
	_ informers.GenericInformer    = &params{}
	_ cache.GenericLister          = &params{}
	_ cache.GenericNamespaceLister = &params{}
)

func (p *params) Informer() cache.SharedIndexInformer { return p }
func (p *params) HasSynced() bool                     { return true }
func (p *params) Lister() cache.GenericLister         { return p }

// ByNamespace returns the objects of a namespace.
func (p *params) ByNamespace(namespace string) cache.GenericNamespaceLister {
	in := *p
	in.prefix += namespace + "/"
	return &in
}

// Get returns one object.
func (p *params) Get(name string) (runtime.Object, error) {
	e := p.store.Get(p.prefix + name)
	if e == nil {
		return nil, apierrors.NewNotFound(p.kind.GroupResource(), name)
	}
	if err := e.Unreadable(); err != nil {
		return nil, err
	}
	return p.object(e)
}

// List returns the objects with matching labels. Only those are decoded.
func (p *params) List(selector labels.Selector) (all []runtime.Object, err error) {
	from, to := changelog.RangeOf(p.prefix)
	scanned := p.store.Current(p.kind.Prefix()).Scan(context.Background(), from, to, func(e *sqlstore.Entry) bool {
		set, wrong := response.Labels(e)
		if wrong != nil || !selector.Matches(set) {
			err = wrong
			return err == nil
		}
		var object runtime.Object
		if object, err = p.object(e); err == nil {
			all = append(all, object)
		}
		return err == nil
	})
	if err == nil {
		err = scanned
	}
	return all, err
}

// conversionTime bounds the call of a conversion webhook for parameters.
const conversionTime = 10 * time.Second

// paramKey names a parameter among the memos of its entry. What a custom resource looks like
// depends on its Kind, which a new schema replaces.
type paramKey struct {
	gv   schema.GroupVersion
	gone <-chan struct{}
}

// object decodes an entry, once. The object is shared: expressions do not change it.
func (p *params) object(e *sqlstore.Entry) (runtime.Object, error) {
	ctx, cancel := context.WithTimeout(context.Background(), conversionTime)
	defer cancel()
	e, err := response.ConvertEntry(ctx, p.kind, p.version, e)
	if err != nil {
		return nil, err
	}
	gv := schema.GroupVersion{Group: p.kind.Group, Version: p.version}
	v := e.Memo(paramKey{gv, p.kind.Gone()}, func() any {
		object, err := p.decode(e, gv)
		if err != nil {
			return err
		}
		return object
	})
	if err, ok := v.(error); ok {
		return nil, fmt.Errorf("read %s: %w", e.Key, err)
	}
	return v.(runtime.Object), nil
}

// decode decodes an entry in a version.
func (p *params) decode(e *sqlstore.Entry, gv schema.GroupVersion) (*unstructured.Unstructured, error) {
	hub, err := response.Load(p.kind, e)
	if err != nil {
		return nil, err
	}
	object, err := p.kind.Codec.Versioned(hub, gv)
	if err != nil {
		return nil, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return &unstructured.Unstructured{Object: content}, err
}
