package storageadapter

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Getter gives upstream's registries their storage. It implements
// generic.RESTOptionsGetter.
type Getter struct {
	store  *sqlstore.Store
	kindOf func(schema.GroupResource) *kind.Kind
}

// New returns the Getter for objects in store. kindOf finds the Kind of a resource. It is
// called when an object is read or written, so that registries can be built before Kinds.
func New(store *sqlstore.Store, kindOf func(schema.GroupResource) *kind.Kind) *Getter {
	return &Getter{store, kindOf}
}

// Kind returns the Kind of a resource, which must exist.
func (g *Getter) Kind(resource schema.GroupResource) *kind.Kind {
	k := g.kindOf(resource)
	if k == nil {
		panic(fmt.Sprintf("no objects of %v are stored here", resource)) // every test of the registry would fail
	}
	return k
}

var _ generic.RESTOptionsGetter = &Getter{}

// GetRESTOptions gives a registry the keys of the log and the storage of its resource.
func (g *Getter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	o := &objects{g, resource}
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{
			GroupResource: resource,
			Config:        storagebackend.Config{Codec: copier{o}},
		},
		ResourcePrefix:          strings.TrimSuffix(object.Prefix(resource.Group, resource.Resource), "/"),
		EnableGarbageCollection: true,
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
			func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return o, func() {}, nil
		},
	}, nil
}
