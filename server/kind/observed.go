package kind

import (
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// Entry makes an entry of an object in hub form, as if it were in the log, because answers are made of
// entries. It has a revision if the object has a resourceVersion.
func (k *Kind) Entry(obj runtime.Object) (*sqlstore.Entry, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	version := m.GetResourceVersion()
	value, err := k.Codec.Encode(obj)
	if err != nil {
		return nil, err
	}
	e := &sqlstore.Entry{Key: k.Key(m.GetNamespace(), m.GetName()), Value: value}
	if version == "" {
		return e, nil
	}
	if e.Revision, err = strconv.ParseInt(version, 10, 64); err != nil {
		return nil, fmt.Errorf("resourceVersion of %s: %w", e.Key, err)
	}
	e.Value = object.Splice(value, e.Revision)
	return e, nil
}
