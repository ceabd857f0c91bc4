package builtin_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// withoutAttribute are selectable fields that cannot be told from a stored object without decoding it, and
// those that its key tells.
var withoutAttribute = map[string]bool{"metadata.name": true, "metadata.namespace": true, "source": true}

// TestAttributes compares what attributes tell of stored objects with what Attrs says of the decoded ones: of
// random objects, and of those that lack a field.
func TestAttributes(t *testing.T) {
	for _, k := range builtin.Kinds(builtin.Options{}) {
		if k.Virtual != nil || k.Observed != nil {
			continue
		}
		t.Run(k.Group+"/"+k.Resource, func(t *testing.T) {
			for seed := range int64(20) {
				obj := randomObject(t, k, seed)
				if m, err := meta.Accessor(obj); err == nil {
					m.SetName("name") // none may have a slash
				}
				value, err := k.Codec.Encode(obj)
				if err != nil {
					t.Fatal(err)
				}
				checkAttributes(t, k, value)
				for _, attribute := range k.Attributes {
					checkAttributes(t, k, without(t, value, attribute))
				}
			}
		})
	}
}

func checkAttributes(t *testing.T, k *kind.Kind, value []byte) {
	t.Helper()
	obj, err := k.Codec.Load(value)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := meta.Accessor(obj)
	_, fields, err := k.Attrs(obj)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range fields {
		attribute := k.Attributes[field]
		if attribute == "" {
			if !withoutAttribute[field] {
				t.Errorf("field %s has no attribute", field)
			}
			continue
		}
		got := object.TermOf(attribute)(k.Key(m.GetNamespace(), m.GetName()), object.Splice(value, 7))
		if got.Is == sqlstore.Unclear && !strings.Contains(attribute, "\x00\x00") || got.Is == sqlstore.Present && string(got.Text) != want || got.Is == sqlstore.Lacking {
			t.Errorf("%s is %q, its attribute %d with %q: %s", field, want, got.Is, got.Text, value)
		}
	}
}

// without returns a stored object without the field of an attribute.
func without(t *testing.T, value []byte, attribute string) []byte {
	path := strings.Split(attribute, "\x00")
	if len(path) < 3 {
		return value
	}
	var o map[string]any
	if err := json.Unmarshal(value, &o); err != nil {
		t.Fatal(err)
	}
	inner := o
	for _, name := range path[2 : len(path)-1] {
		inner, _ = inner[name].(map[string]any)
	}
	delete(inner, path[len(path)-1])
	metadata, err := json.Marshal(o["metadata"])
	if err != nil {
		t.Fatal(err)
	}
	kind, version := o["kind"].(string), o["apiVersion"].(string)
	delete(o, "kind")
	delete(o, "apiVersion")
	delete(o, "metadata")
	rest, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	stored := `{"kind":"` + kind + `","apiVersion":"` + version + `","metadata":` + string(metadata)
	if len(o) == 0 {
		return []byte(stored + "}")
	}
	return []byte(stored + "," + string(rest[1:]))
}
