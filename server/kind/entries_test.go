package kind

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSetFields compares with upstream's SetManagedFields.
func TestSetFields(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 678, time.FixedZone("", 3600)))
	entry := metav1.ManagedFieldsEntry{
		Manager: "m", Operation: "Update", APIVersion: "example.com/v1", Time: &at, FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:spec":{".":{},"f:a":{},"k:{\"n\":1}":{}}}`),
	}
	zero, bare, status := entry, entry, entry
	zero.Time = &metav1.Time{}
	bare.Time, bare.FieldsV1 = nil, nil
	status.Subresource, status.Manager = "status", ""
	for name, entries := range map[string][]metav1.ManagedFieldsEntry{
		"none": nil, "one": {entry}, "again": {entry}, "two": {entry, status}, "zero time": {entry, zero}, "bare": {bare},
	} {
		for _, object := range []map[string]any{{}, {"metadata": map[string]any{"name": "a"}}} {
			ours, upstreams := unstructured.Unstructured{Object: object}, unstructured.Unstructured{Object: object}
			ours, upstreams = *ours.DeepCopy(), *upstreams.DeepCopy()
			setFields(&ours, entries)
			upstreams.SetManagedFields(entries)
			if diff := cmp.Diff(upstreams.Object, ours.Object); diff != "" {
				t.Errorf("%s: upstream's (-) and ours (+):\n%s", name, diff)
			}
		}
	}
}
