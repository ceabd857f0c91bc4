package custom

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// These tests compare what the short cuts give with what upstream's way gives, for objects
// made at random of the values that a schema may have to do with.

// puzzle is a schema with something of everything.
const puzzle = `{"type":"object","required":["spec"],"properties":{
	"spec":{"type":"object","required":["b"],
		"x-kubernetes-validations":[{"rule":"!has(self.b) || self.b != 3","message":"b is three"},{"rule":"self.a == oldSelf.a"},
			{"rule":"!has(self.c) || self.c.size() < 3","messageExpression":"'c has ' + string(self.c.size()) + (has(self.a) ? self.a : '')"}],
		"properties":{
			"a":{"type":"string","maxLength":3,"enum":["x","y","long"]},
			"b":{"type":"integer","default":2,"maximum":5},
			"c":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
			"d":{"type":"object","additionalProperties":{"type":"integer","nullable":true}},
			"e":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"a":{"type":"object","properties":{"b":{"type":"string","default":"in e"}}}}},
			"f":{"x-kubernetes-int-or-string":true},
			"g":{"type":"string","nullable":true,"default":"g"},
			"list":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a"],"items":{"type":"object","required":["a"],
				"x-kubernetes-validations":[{"rule":"self == self && self.a != 'y'"}],
				"properties":{"a":{"type":"string"},"b":{"type":"integer","default":7},"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","maxLength":2}}}}}}},
			"object":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
			"any":{"anyOf":[{"required":["a"]},{"required":["b"]}],"type":"object","properties":{"a":{"type":"string"},"b":{"type":"integer"}}}}},
	"status":{"type":"object","properties":{"a":{"type":"string"}}}}}`

func puzzled(t *testing.T) (*apiextensionsv1.CustomResourceDefinition, *apiextensionsv1.CustomResourceDefinitionVersion) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	text := `{"metadata":{"name":"puzzles.example.com"},"spec":{"group":"example.com","scope":"Namespaced","versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":` + puzzle + `}}]},"status":{"acceptedNames":{"plural":"puzzles","kind":"Puzzle"}}}`
	if err := json.Unmarshal([]byte(text), crd); err != nil {
		t.Fatal(err)
	}
	return crd, &crd.Spec.Versions[0]
}

// maker makes values.
type maker struct{ *rand.Rand }

func (m maker) value(depth int) any {
	switch n := m.IntN(14); {
	case n == 0:
		return nil
	case n < 3:
		return int64(m.IntN(8))
	case n < 4:
		return m.Float64() * 10
	case n < 5:
		return m.IntN(2) == 0
	case n < 8 || depth == 0:
		return []string{"", "x", "y", "long", "<é\"\u2028\x01", "2024-01-02T03:04:05Z"}[m.IntN(6)]
	case n < 10:
		list := make([]any, m.IntN(4))
		for i := range list {
			list[i] = m.value(depth - 1)
		}
		return list
	}
	return m.object(depth - 1)
}

func (m maker) object(depth int) map[string]any {
	object := map[string]any{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "list", "object", "any", "metadata", "kind", "unknown"} {
		if m.IntN(5) == 0 {
			object[name] = m.value(depth)
		}
	}
	return object
}

// puzzle is an object that is mostly as the schema wants it.
func (m maker) puzzle() *unstructured.Unstructured {
	spec := map[string]any{"a": "x", "b": int64(1), "g": "text"}
	for name, value := range map[string]any{
		"c": []any{"x", "y"}, "d": map[string]any{"k": int64(1)}, "e": map[string]any{"free": map[string]any{"a": nil}},
		"f": "x", "any": map[string]any{"a": "x"}, "list": []any{map[string]any{"a": "x", "b": int64(1)}},
		"object": map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "x"}},
	} {
		if m.IntN(3) == 0 {
			spec[name] = value
		}
	}
	if m.IntN(2) == 0 {
		maps.Copy(spec, m.object(3))
	}
	metadata := map[string]any{"name": "x", "namespace": "default"}
	for name, value := range map[string]any{
		"labels": map[string]any{"a": "b"}, "generation": int64(1), "uid": "u", "creationTimestamp": "2024-01-02T03:04:05Z",
		"finalizers": []any{"example.com/x"}, "managedFields": []any{map[string]any{"manager": "m", "operation": "Update", "apiVersion": "example.com/v1",
			"time": "2024-01-02T03:04:05Z", "fieldsType": "FieldsV1", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}},
		"annotations": map[string]any{},
	} {
		if m.IntN(3) == 0 {
			metadata[name] = value
		}
	}
	for _, name := range []string{"labels", "creationTimestamp", "generation", "finalizers", "managedFields", "deletionTimestamp", "other"} {
		if m.IntN(20) == 0 {
			metadata[name] = m.value(2)
		}
	}
	object := map[string]any{"apiVersion": "example.com/v1", "kind": "Puzzle", "metadata": metadata, "spec": spec}
	if m.IntN(8) == 0 {
		object["status"] = m.value(2)
	}
	return (&unstructured.Unstructured{Object: object}).DeepCopy()
}

const puzzles = 4000

// TestSettledObjects: what needs no passes would come out of them unchanged.
func TestSettledObjects(t *testing.T) {
	crd, _ := puzzled(t)
	short, err := newSchemas(crd)
	if err != nil {
		t.Fatal(err)
	}
	long := short
	long.outlines = nil
	m, settled := maker{rand.New(rand.NewPCG(1, 1))}, 0
	for i := range puzzles {
		u := m.puzzle()
		how := coercion{stored: i%2 == 0, report: i%3 == 0}
		if short.settled(u.DeepCopy(), "Puzzle", "example.com/v1", how) {
			settled++
		} else if !short.outlines["v1"].settles(u.Object) {
			continue // the passes are made, and not even they make the same of it each time
		}
		a, b := u.DeepCopy(), u.DeepCopy()
		unknownA, errA := short.coerce(a, how)
		unknownB, errB := long.coerce(b, how)
		if errA == nil && errB == nil {
			short.fill(a)
			long.fill(b)
		}
		if diff := cmp.Diff([]any{b.Object, len(unknownB), errB == nil}, []any{a.Object, len(unknownA), errA == nil}); diff != "" {
			t.Fatalf("%v, %+v: -passes +short cut\n%s", u.Object, how, diff)
		}
	}
	if settled < puzzles/10 {
		t.Errorf("only %d of %d objects were settled", settled, puzzles)
	}
}

// TestCreation: new objects are refused as upstream's strategy refuses them.
func TestCreation(t *testing.T) {
	crd, v := puzzled(t)
	all, err := newSchemas(crd)
	if err != nil {
		t.Fatal(err)
	}
	structural := all.byVersion["v1"]
	internal := &apiextensions.JSONSchemaProps{}
	if internal, err = internalSchema(v); err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		t.Fatal(err)
	}
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Puzzle"}
	upstream := customresource.NewStrategy(typer, true, gvk, validator, nil, structural, nil, nil, nil)
	ours, err := newVersion(crd, v, structural)
	if err != nil {
		t.Fatal(err)
	}
	ctx, m, valid := context.Background(), maker{rand.New(rand.NewPCG(2, 2))}, 0
	for range puzzles / 4 {
		u := m.puzzle()
		if _, err := all.coerce(u, coercion{}); err != nil {
			continue
		}
		all.fill(u)
		before := runtime.DeepCopyJSON(u.Object)
		want, got := texts(upstream.Validate(ctx, u)), texts(ours.create.Validate(ctx, u))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%v: -upstream +ours\n%s", before, diff)
		}
		if len(want) == 0 {
			valid++
		}
		if diff := cmp.Diff(before, u.Object); diff != "" {
			t.Fatal(diff)
		}
	}
	if valid < puzzles/80 || valid > puzzles/5 {
		t.Errorf("%d of %d objects were valid", valid, puzzles/4)
	}
}

// texts are in order: upstream goes by maps.
func texts(errs field.ErrorList) (texts []string) {
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return texts
}

// TestEncode: values are written as encoding/json writes them.
func TestEncode(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(3, 3))}
	for range puzzles / 4 {
		value := m.value(4)
		want, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := appendValue(nil, value)
		if err != nil || !bytes.Equal(want, got) {
			t.Fatalf("%s instead of %s, %v", got, want, err)
		}
	}
	u := m.puzzle()
	u.SetResourceVersion("7")
	got, err := encodeStored(u.Object)
	if err != nil || !strings.HasPrefix(string(got), `{"kind":"Puzzle","apiVersion":"example.com/v1","metadata":{`) || strings.Contains(string(got), "resourceVersion") {
		t.Errorf("%s, %v", got, err)
	}
}

func TestFieldsRead(t *testing.T) {
	for expression, want := range map[string]string{
		"":                                  "[] true",
		"true":                              "[] true",
		"self.a < self.b.c":                 "[a b] true",
		"has(self.a) && oldSelf.b == 1":     "[a b] true",
		"self.list.all(x, x.y in self.set)": "[list set] true",
		"self.x__dash__y == 1":              "[x-y] true",
		"self == oldSelf":                   "[] false",
		"self.a == 1 && size(self) > 0":     "[a] false",
		"self.list.all(self, self > 1)":     "[list] false",
		"self['a'] == 1":                    "[] false",
		"oldSelf.hasValue()":                "[] false",
		"self.?a.orValue(1) == 1":           "[] false",
		"self. ":                            "[] false",
	} {
		fields := map[string]bool{}
		known := fieldsRead(expression, fields)
		if got := fmt.Sprint(slices.Sorted(maps.Keys(fields)), known); got != want {
			t.Errorf("%q reads %s, not %s", expression, got, want)
		}
	}
}
