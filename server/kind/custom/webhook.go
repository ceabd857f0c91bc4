package custom

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// newConversion returns the conversion of a version whose definition names a webhook.
// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definition-versioning/#webhook-conversion
func newConversion(c *codec, fields func(ctx context.Context, subresource string) *kind.FieldManager) *kind.Conversion {
	version := fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,`, c.gvk.Kind, c.gvk.GroupVersion().String())
	return &kind.Conversion{
		Needed: func(json []byte) bool { return !bytes.HasPrefix(json, version) },
		Read:   c.read, Load: loadPlain, Write: c.write, Fields: fields,
	}
}

// read converts stored objects in as few calls as their size allows.
func (c *codec) read(ctx context.Context, stored [][]byte) ([][]byte, error) {
	s, err := c.use()
	if err != nil {
		return nil, err
	}
	out := make([][]byte, 0, len(stored))
	for len(stored) > 0 {
		n := batch(stored)
		if out, err = c.readBatch(ctx, s, stored[:n], out); err != nil {
			return nil, err
		}
		stored = stored[n:]
	}
	return out, nil
}

// The bounds of one call. A webhook reads the body of a call as a whole.
const (
	mostObjects = 1000
	mostBytes   = 4 << 20
)

func batch(stored [][]byte) (n int) {
	for size := 0; n < len(stored) && n < mostObjects; n++ {
		if size += len(stored[n]); size > mostBytes && n > 0 {
			break
		}
	}
	return n
}

func (c *codec) readBatch(ctx context.Context, s *serving, stored, out [][]byte) ([][]byte, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(c.gvk.GroupVersion().WithKind(c.listKind))
	for _, json := range stored {
		u, err := c.decodeStored(s, json)
		if err != nil {
			return nil, err
		}
		list.Items = append(list.Items, *u)
	}
	if err := c.convertItems(ctx, s, list); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if _, err := s.schemas.coerce(&list.Items[i], coercion{}); err != nil {
			return nil, err
		}
		json, err := encodeWhole(&list.Items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, json)
	}
	return out, nil
}

// convertItems converts a list. A single object is converted by itself, so that errors name
// its kind and not a list's.
func (c *codec) convertItems(ctx context.Context, s *serving, list *unstructured.UnstructuredList) error {
	in := runtime.Object(list)
	if len(list.Items) == 1 {
		in = &list.Items[0]
	}
	converted, err := s.convert.to(ctx, in, c.gvk.GroupVersion())
	if err != nil {
		return err
	}
	switch converted := converted.(type) {
	case *unstructured.Unstructured:
		list.Items[0] = *converted
	case *unstructured.UnstructuredList:
		list.Items = converted.Items
	}
	return nil
}

// encodeWhole encodes an object in the layout of stored JSON with its resourceVersion.
func encodeWhole(u *unstructured.Unstructured) ([]byte, error) {
	value, err := encodeStored(u.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", u.GetKind(), err)
	}
	if revision, err := strconv.ParseInt(u.GetResourceVersion(), 10, 64); err == nil {
		value = object.Splice(value, revision)
	}
	return value, nil
}

func loadPlain(json []byte) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(json, &u.Object); err != nil {
		return nil, fmt.Errorf("decode a converted object: %w", err)
	}
	return u, nil
}

// write is kind.Conversion.Write.
func (c *codec) write(ctx context.Context, obj runtime.Object) (runtime.Object, error) {
	s, err := c.use()
	if err != nil {
		return nil, err
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("convert %s: it is a %T", c.gvk.Kind, obj)
	}
	return s.to(ctx, c.stored.GroupVersion(), u)
}
