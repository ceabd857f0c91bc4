package history

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/plinth-io/plinth/server/history/v1"
	"github.com/plinth-io/plinth/server/kind"
)

// form is what differs between changes and versions, and their codec. Rows are read as versions; changes are
// versions without data. Hub form is the only version.
type form struct {
	kind    string
	newOne  func() runtime.Object
	newList func() runtime.Object
	one     func(v *v1.Version) runtime.Object
	values  bool
}

var changeForm = &form{
	kind:    "Change",
	newOne:  func() runtime.Object { return &v1.Change{TypeMeta: typeMeta("Change")} },
	newList: func() runtime.Object { return &v1.ChangeList{TypeMeta: typeMeta("ChangeList")} },
	one:     func(v *v1.Version) runtime.Object { return changeOf(v) },
}

var versionForm = &form{
	kind:    "Version",
	newOne:  func() runtime.Object { return &v1.Version{TypeMeta: typeMeta("Version")} },
	newList: func() runtime.Object { return &v1.VersionList{TypeMeta: typeMeta("VersionList")} },
	one:     func(v *v1.Version) runtime.Object { return v },
	values:  true,
}

func typeMeta(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: v1.GroupVersion.String()}
}

func changeOf(v *v1.Version) *v1.Change {
	return &v1.Change{TypeMeta: typeMeta("Change"), ObjectMeta: v.ObjectMeta, Description: v.Description}
}

// New implements kind.Codec.
func (f *form) New() runtime.Object { return f.newOne() }

// NewList implements kind.Codec.
func (f *form) NewList() runtime.Object { return f.newList() }

// NewVersioned implements kind.Codec.
func (f *form) NewVersioned(schema.GroupVersion) (runtime.Object, error) { return f.newOne(), nil }

// Decode implements kind.Codec: there are no bodies.
func (f *form) Decode([]byte, string, schema.GroupVersionKind, bool) (runtime.Object, schema.GroupVersionKind, error) {
	return nil, schema.GroupVersionKind{}, fmt.Errorf("a %s cannot be written", f.kind)
}

// Versioned implements kind.Codec.
func (f *form) Versioned(obj runtime.Object, _ schema.GroupVersion) (runtime.Object, error) {
	return obj, nil
}

// Hub implements kind.Codec.
func (f *form) Hub(obj runtime.Object) (runtime.Object, error) { return obj, nil }

// Objects implements kind.Codec: admission gets no objects.
func (f *form) Objects(context.Context) kind.Objects { return kind.Objects{} }

// Encode implements kind.Codec.
func (f *form) Encode(obj runtime.Object) ([]byte, error) {
	switch o := obj.(type) { // a copy that shares data with obj
	case *v1.Change:
		c := *o
		c.ResourceVersion, obj = "", &c
	case *v1.Version:
		v := *o
		v.ResourceVersion, obj = "", &v
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // data keeps its stored form
	if err := e.Encode(obj); err != nil {
		return nil, fmt.Errorf("encode %s: %w", f.kind, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Load implements kind.Codec.
func (f *form) Load(data []byte) (runtime.Object, error) {
	obj := f.newOne()
	if err := json.Unmarshal(data, obj); err != nil {
		return nil, fmt.Errorf("decode %s: %w", f.kind, err)
	}
	return obj, nil
}
