package allocate

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	apirest "k8s.io/apiserver/pkg/registry/rest"

	"github.com/plinth-io/plinth/server/kind"
)

// newRegistry returns upstream's registry of k's objects.
func newRegistry(getter generic.RESTOptionsGetter, k *kind.Kind) (*registry.Store, error) {
	singular := k.GroupResource()
	singular.Resource = k.Singular
	r := &registry.Store{
		NewFunc:                   func() runtime.Object { return k.Codec.New() },
		NewListFunc:               func() runtime.Object { return k.Codec.NewList() },
		DefaultQualifiedResource:  k.GroupResource(),
		SingularQualifiedResource: singular,
		CreateStrategy:            k.Create,
		UpdateStrategy:            k.Update,
		DeleteStrategy:            k.Delete,
		TableConvertor:            apirest.NewDefaultTableConvertor(k.GroupResource()),
	}
	return r, r.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter})
}
