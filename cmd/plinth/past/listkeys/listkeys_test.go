package listkeys

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func managers(fields ...string) (all []metav1.ManagedFieldsEntry) {
	for _, f := range fields {
		all = append(all, metav1.ManagedFieldsEntry{Manager: "m", FieldsV1: metav1.NewFieldsV1(f)})
	}
	return append(all, metav1.ManagedFieldsEntry{Manager: "without fields"})
}

func TestLearn(t *testing.T) {
	var none, k Keys
	k.Learn(managers(
		`{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{"f:name":{}}}}},"f:args":{}}}`,
		`{"f:metadata":{"f:finalizers":{"v:\"a\"":{}},"f:labels":{"f:k:x":{}}}}`,
		`{"f:spec":"damaged"}`, `[`,
	))
	var root Path
	spec := root.Field("spec")
	for _, row := range []struct {
		name  string
		path  Path
		want  []string
		known bool
	}{
		{"a key", spec.Field("containers"), []string{"name"}, true},
		{"two keys, in a list", spec.Field("containers").Items().Field("ports"), []string{"containerPort", "protocol"}, true},
		{"a set", root.Field("metadata").Field("finalizers"), nil, true},
		{"an atomic list", spec.Field("args"), nil, false},
		{"a map", root.Field("metadata").Field("labels"), nil, false},
		{"the same name elsewhere", root.Field("containers"), nil, false},
		{"items that are no lists", spec.Field("containers").Items(), nil, false},
	} {
		list, known := k.Of(row.path)
		if known != row.known || !slices.Equal(list.Fields, row.want) {
			t.Errorf("%s: %v, %v", row.name, list.Fields, known)
		}
		if _, known := none.Of(row.path); known {
			t.Errorf("%s: known without a manager", row.name)
		}
	}
	k.Learn(managers(`{"f:spec":{"f:containers":{"k:{\"id\":1}":{"f:name":{}}}}}`))
	if list, _ := k.Of(spec.Field("containers")); !slices.Equal(list.Fields, []string{"id"}) {
		t.Errorf("after a change of the schema: %v", list.Fields)
	}
}

func TestNames(t *testing.T) {
	item := func(pairs ...any) any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	ports := List{Fields: []string{"port", "protocol"}}
	for _, row := range []struct {
		name  string
		list  List
		items []any
		ok    bool
	}{
		{"none", ports, nil, true},
		{"different", ports, []any{item("port", int64(1), "protocol", "TCP"), item("port", int64(1), "protocol", "UDP")}, true},
		{"the same", ports, []any{item("port", int64(1)), item("port", int64(1), "name", "b")}, false},
		{"one has the default", ports, []any{item("port", int64(1)), item("port", int64(1), "protocol", "TCP")}, true},
		{"a number and a text", ports, []any{item("port", int64(1)), item("port", "1")}, true},
		{"no map", ports, []any{"x"}, false},
		{"a set", List{}, []any{"a", "b", int64(1)}, true},
		{"no set", List{}, []any{"a", "a"}, false},
	} {
		names, ok := row.list.Names(row.items)
		if ok != row.ok || ok && len(names) != len(row.items) {
			t.Errorf("%s: %q, %v", row.name, names, ok)
		}
	}
}
