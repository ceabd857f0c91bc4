package custom

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
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

// Tests of this package compare the results of short cuts with upstream's, for random objects of
// the schema below.

// puzzle is a schema with every feature of schemas.
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

// maker makes random values.
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

// puzzle makes an object that is mostly valid by the schema.
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

// TestCreation: the strategy for new objects has the errors of upstream's strategy.
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

// texts are sorted, because upstream walks maps.
func texts(errs field.ErrorList) (texts []string) {
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	slices.Sort(texts)
	return texts
}
