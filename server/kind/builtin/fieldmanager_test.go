package builtin_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
)

// TestEveryKindTracksFields: every version of every kind, and every subresource, records managed
// fields.
func TestEveryKindTracksFields(t *testing.T) {
	for _, k := range builtin.Kinds(builtin.Options{}) {
		for _, v := range k.Versions {
			gvk := k.GVK(v.Name)
			t.Run(gvk.String(), func(t *testing.T) {
				trackLabel(t, v.Fields, k.Codec, gvk)
				applyLabel(t, v.Fields, k.Codec, gvk)
			})
			for name, sub := range k.Subresources {
				codec, body := k.Codec, gvk
				if sub.Codec != nil {
					codec, body = sub.Codec, sub.GVK
				}
				t.Run(gvk.String()+"/"+name, func(t *testing.T) {
					if sub.Fields[v.Name] == nil {
						t.Fatal("no field manager")
					}
					live := newBody(t, codec, body)
					if _, err := sub.Fields[v.Name].Update(live, live.DeepCopyObject(), "me"); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

func newBody(t *testing.T, codec kind.Codec, gvk schema.GroupVersionKind) runtime.Object {
	t.Helper()
	obj, err := codec.NewVersioned(gvk.GroupVersion())
	if err != nil {
		t.Fatal(err)
	}
	return obj
}

// trackLabel creates an object with a label by an update.
func trackLabel(t *testing.T, f *kind.FieldManager, codec kind.Codec, gvk schema.GroupVersionKind) {
	t.Helper()
	obj := newBody(t, codec, gvk)
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	m.SetLabels(map[string]string{"a": "b"})
	tracked, err := f.Update(newBody(t, codec, gvk), obj, "me")
	checkLabel(t, tracked, err)
}

// applyLabel creates an object with a label by an apply.
func applyLabel(t *testing.T, f *kind.FieldManager, codec kind.Codec, gvk schema.GroupVersionKind) {
	t.Helper()
	config := &unstructured.Unstructured{}
	config.SetGroupVersionKind(gvk)
	config.SetLabels(map[string]string{"a": "b"})
	applied, err := f.Apply(newBody(t, codec, gvk), config, "me", false)
	checkLabel(t, applied, err)
}

func checkLabel(t *testing.T, obj runtime.Object, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		t.Fatal(err)
	}
	entries := m.GetManagedFields()
	if m.GetLabels()["a"] != "b" || len(entries) != 1 || !strings.Contains(entries[0].FieldsV1.String(), `"f:labels":`) {
		t.Errorf("labels %v, managed %v", m.GetLabels(), entries)
	}
}
