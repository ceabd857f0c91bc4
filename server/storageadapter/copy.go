package storageadapter

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"

	"github.com/plinth-io/plinth/sqlstore/object"
)

// copier is the runtime.Codec by which upstream's registries copy the object that a dry run
// would have stored into their answer.
type copier struct{ of *objects }

var _ runtime.Codec = copier{}

// Encode writes the object for Decode, with its resourceVersion.
func (c copier) Encode(obj runtime.Object, w io.Writer) error {
	value, err := c.of.kind().Codec.Encode(obj)
	if err != nil {
		return err
	}
	if version, err := (storage.APIObjectVersioner{}).ObjectResourceVersion(obj); err == nil && version != 0 {
		value = object.Splice(value, int64(version))
	}
	_, err = w.Write(value)
	return err
}

func (c copier) Identifier() runtime.Identifier {
	return runtime.Identifier("copy of " + c.of.resource.String())
}

// Decode sets into to the object that was encoded.
func (c copier) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, err := c.of.kind().Codec.Load(data)
	if err != nil {
		return nil, nil, err
	}
	gvk := c.of.kind().StoredGVK()
	return into, &gvk, set(into, obj)
}
