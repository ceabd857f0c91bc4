package ui

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// mask hides the values of Secrets. The same value is hidden by the same text wherever one mask is used, and another
// one by another, so that a comparison shows that a value has changed, and not to what.
type mask struct{ seen map[string]map[string]int }

func newMask() *mask { return &mask{map[string]map[string]int{}} }

// object returns an object that may be shown: a copy of a Secret, and any other one as it is.
func (m *mask) object(o *unstructured.Unstructured) *unstructured.Unstructured {
	if o == nil || o.GetKind() != "Secret" || o.GetAPIVersion() != "v1" {
		return o
	}
	o = o.DeepCopy()
	var shown []string // values, as they are and decoded
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(o.Object, field)
		for name, value := range values {
			text := fmt.Sprint(value)
			plain, _ := base64.StdEncoding.DecodeString(text)
			for _, text := range []string{text, string(plain)} {
				if len(text) >= shortest {
					shown = append(shown, text)
				}
			}
			values[name] = m.hide(field+"/"+name, fmt.Sprint(value))
		}
		if values != nil {
			o.Object[field] = values
		}
	}
	if annotations := o.GetAnnotations(); len(annotations) > 0 {
		for name, text := range annotations { // tools keep copies of the object there
			if name == corev1.LastAppliedConfigAnnotation || slices.ContainsFunc(shown, func(value string) bool { return strings.Contains(text, value) }) {
				annotations[name] = m.hide("annotation/"+name, text)
			}
		}
		o.SetAnnotations(annotations)
	}
	return o
}

// shortest is how long a value is that is looked for in other texts.
const shortest = 4

// hide returns what stands for a value.
func (m *mask) hide(field, value string) string {
	known := m.seen[field]
	if known == nil {
		known = map[string]int{}
		m.seen[field] = known
	}
	n, ok := known[value]
	if !ok {
		n = len(known) + 1
		known[value] = n
	}
	if n == 1 {
		return "••••••"
	}
	return fmt.Sprintf("•••••• (another, %d)", n)
}
