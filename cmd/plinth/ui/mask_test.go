package ui

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func secretOf(value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"name": "payment", "annotations": map[string]any{"kubectl.kubernetes.io/last-applied-configuration": `{"data":{"key":"` + value + `"}}`}},
		"data":     map[string]any{"key": value}, "stringData": map[string]any{"key": value},
	}}
}

// TestMask: no value of a Secret is left, a changed one differs, and the object itself stays as it is.
func TestMask(t *testing.T) {
	t.Parallel()
	m := newMask()
	old, same, new := secretOf("first-value"), secretOf("first-value"), secretOf("second-value")
	a, b, c := fmt.Sprint(m.object(old).Object), fmt.Sprint(m.object(same).Object), fmt.Sprint(m.object(new).Object)
	if strings.Contains(a+b+c, "-value") {
		t.Errorf("a value is shown: %s %s", a, c)
	}
	if a != b || a == c {
		t.Errorf("the same value is hidden as %s and %s, another one as %s", a, b, c)
	}
	if !strings.Contains(fmt.Sprint(old.Object), "first-value") {
		t.Error("the object itself was changed")
	}
	config := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"key": "shown"}}}
	if m.object(config) != config || m.object(nil) != nil {
		t.Error("other objects are changed")
	}
}
