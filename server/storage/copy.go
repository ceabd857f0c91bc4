package storage

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore"
)

// copier is the runtime.Codec by which upstream's registries copy what a dry run would
// have stored into what they answer.
type copier struct{ kind *kind.Kind }

var _ runtime.Codec = copier{}

// Encode writes what Decode reads, resourceVersion included.
func (c copier) Encode(obj runtime.Object, w io.Writer) error {
	value, err := c.kind.Codec.Store(obj)
	if err != nil {
		return err
	}
	if version, err := (storage.APIObjectVersioner{}).ObjectResourceVersion(obj); err == nil && version != 0 {
		value = sqlstore.Splice(value, int64(version))
	}
	_, err = w.Write(value)
	return err
}

func (c copier) Identifier() runtime.Identifier {
	return runtime.Identifier("copy of " + c.kind.GroupResource().String())
}

// Decode makes into what was encoded.
func (c copier) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, err := c.kind.Codec.Load(data)
	if err != nil {
		return nil, nil, err
	}
	gvk := c.kind.StoredGVK()
	return into, &gvk, set(into, obj)
}
