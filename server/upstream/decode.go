package upstream

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	protobufStart = []byte("k8s\x00")      // an envelope in protobuf
	cborStart     = []byte("\xd9\xd9\xf7") // CBOR, an alpha feature
	errCBOR       = errors.New("it is in CBOR, which plinth does not read")
	errEncoding   = errors.New("it is neither JSON nor Kubernetes' protobuf")
	errMoved      = errors.New("its metadata has another name or namespace than its key")
)

// decode returns a decrypted value of the etcd in the form of the log, and the version that it has in the
// etcd.
func (p place) decode(value []byte) (stored []byte, from schema.GroupVersion, err error) {
	if bytes.HasPrefix(value, cborStart) {
		return nil, from, errCBOR
	}
	if p.builtin == nil {
		return p.relayout(value)
	}
	obj, gvk, err := p.builtin.read(value)
	if err != nil {
		return nil, from, err
	}
	if gvk.Kind != p.kind {
		return nil, from, fmt.Errorf("it is a %s", gvk.Kind)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, from, err
	}
	if accessor.GetName() != p.name || accessor.GetNamespace() != p.namespace {
		return nil, from, errMoved
	}
	hub, err := p.builtin.codec.Hub(obj)
	if err != nil {
		return nil, from, err
	}
	stored, err = p.builtin.codec.Encode(hub)
	return stored, gvk.GroupVersion(), err
}

// read decodes a value into an object of its version.
func (b *builtinResource) read(value []byte) (runtime.Object, *schema.GroupVersionKind, error) {
	from := b.json
	switch {
	case bytes.HasPrefix(value, protobufStart):
		from = b.protobuf
	case !bytes.HasPrefix(bytes.TrimLeft(value, " \t\r\n"), []byte("{")):
		return nil, nil, errEncoding
	}
	obj, gvk, err := from.Decode(value, nil, nil)
	if runtime.IsNotRegisteredError(err) {
		return nil, nil, fmt.Errorf("there is no %s of %s in Kubernetes %s", gvk.Kind, gvk.GroupVersion(), release)
	}
	return obj, gvk, err
}
