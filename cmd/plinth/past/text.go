package past

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	historyv1 "github.com/plinth-io/plinth/server/history/v1"
)

// Object reads the object of a version. It has the resourceVersion of that version.
func Object(v *historyv1.Version) (*unstructured.Unstructured, error) {
	if v.Unreadable != "" {
		return nil, fmt.Errorf("revision %d of %s cannot be read: %s", v.Revision, v.Object.Name, v.Unreadable)
	}
	object := new(unstructured.Unstructured)
	if err := object.UnmarshalJSON(v.Data.Raw); err != nil {
		return nil, fmt.Errorf("read revision %d of %s: %w", v.Revision, v.Object.Name, err)
	}
	object.SetResourceVersion(fmt.Sprint(v.Revision))
	return object, nil
}

// View says what of an object is shown when its versions are compared.
type View struct {
	// All shows managedFields, resourceVersion and generation, which differ in nearly every version
	// and say nothing about what was changed.
	All bool
}

// Text returns an object as YAML, nothing for nil.
func (v View) Text(object *unstructured.Unstructured) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	return YAML(v.Content(object))
}

// Content returns what of the object is shown. It shares its parts with the object.
func (v View) Content(object *unstructured.Unstructured) map[string]any {
	meta, ok := object.Object["metadata"].(map[string]any)
	if v.All || !ok {
		return object.Object
	}
	return with(object.Object, "metadata", without(meta, "managedFields", "resourceVersion", "generation"))
}

func without(m map[string]any, keys ...string) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		out[key] = value
	}
	for _, key := range keys {
		delete(out, key)
	}
	return out
}

func with(m map[string]any, key string, value any) map[string]any {
	out := without(m)
	out[key] = value
	return out
}

// Diff returns the unified diff of two texts without a header, nothing if they are the same.
func Diff(old, new []byte) []string {
	text := diff.Diff("a", old, "b", new)
	if text == nil {
		return nil
	}
	// diff, --- and +++ are the header.
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")[3:]
	return lines
}

// Compare returns the diff of two objects, of which one may be nil.
func (v View) Compare(old, new *unstructured.Unstructured) ([]string, error) {
	a, err := v.Text(old)
	if err != nil {
		return nil, err
	}
	b, err := v.Text(new)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(a, b) {
		return nil, nil
	}
	return Diff(a, b), nil
}
