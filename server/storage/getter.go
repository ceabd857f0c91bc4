package storage

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
)

// Getter gives upstream's registries their storage. It implements
// generic.RESTOptionsGetter.
type Getter struct {
	store *sqlstore.Store
	kinds map[schema.GroupResource]*kind.Kind
}

// New returns the Getter of kinds' objects in store.
func New(store *sqlstore.Store, kinds []*kind.Kind) *Getter {
	g := &Getter{store: store, kinds: make(map[schema.GroupResource]*kind.Kind, len(kinds))}
	for _, k := range kinds {
		g.kinds[k.GroupResource()] = k
	}
	return g
}

var _ generic.RESTOptionsGetter = &Getter{}

// GetRESTOptions gives a registry keys that are the log's and a storage of its resource.
func (g *Getter) GetRESTOptions(resource schema.GroupResource, _ runtime.Object) (generic.RESTOptions, error) {
	k := g.kinds[resource]
	if k == nil {
		return generic.RESTOptions{}, fmt.Errorf("no objects of %v are stored here", resource)
	}
	return generic.RESTOptions{
		StorageConfig: &storagebackend.ConfigForResource{
			GroupResource: resource,
			Config:        storagebackend.Config{Codec: copier{k}},
		},
		ResourcePrefix:          strings.TrimSuffix(k.Prefix(), "/"),
		EnableGarbageCollection: true,
		Decorator: func(*storagebackend.ConfigForResource, string, func(runtime.Object) (string, error), func() runtime.Object,
			func() runtime.Object, storage.AttrFunc, storage.IndexerFuncs, *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
			return &objects{store: g.store, kind: k}, func() {}, nil
		},
	}, nil
}
