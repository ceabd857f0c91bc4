package past

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/plinth-io/plinth/server/history/fieldsets"
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
	// Hide returns what is shown instead of an object, such as a Secret without its values; nil: the object.
	Hide func(*unstructured.Unstructured) *unstructured.Unstructured
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
	if v.Hide != nil {
		object = v.Hide(object)
	}
	if v.All {
		return object.Object
	}
	return fieldsets.Content(object.Object)
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

// Compare returns the diff of two objects, of which one may be nil. It begins with the items of lists that were changed,
// by their merge keys; the diff itself has them in the order of the new object.
func (v View) Compare(old, new *unstructured.Unstructured) ([]string, error) {
	var lines []string
	if old != nil && new != nil {
		lists := fieldsets.ListsOf(old.Object, new.Object)
		lines = v.compareItems(old, new, lists)
		old = &unstructured.Unstructured{Object: fieldsets.Align(old.Object, new.Object, lists).(map[string]any)}
	}
	a, err := v.Text(old)
	if err != nil {
		return nil, err
	}
	b, err := v.Text(new)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(a, b) {
		return lines, nil
	}
	return append(lines, Diff(a, b)...), nil
}

// mostItems is how many fields of items a diff names.
const mostItems = 20

// compareItems says what was changed in items of lists.
func (v View) compareItems(old, new *unstructured.Unstructured, lists *fieldsets.Lists) (lines []string) {
	touched, more := fieldsets.CompareItems(v.Content(old), v.Content(new), lists, mostItems)
	for _, t := range touched {
		lines = append(lines, t.String())
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more fields of items", more))
	}
	return lines
}
