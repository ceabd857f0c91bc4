package controllers

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stored is an object as the log holds it. Names of metadata fields also occur in other places,
// where ownershipOf must not read them.
const stored = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a","namespace":"b",` +
	`"annotations":{"uid":"x\"}","finalizers":"[\\"},"labels":{"deletionTimestamp":"no"},` +
	`"uid":"6f1c","deletionTimestamp":"2025-01-02T03:04:05Z",` +
	`"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n}]","uid":"9"}],"finalizers":["a/b","c"],"managedFields":[{"fieldsV1":{"f:metadata":{}}}]},` +
	`"data":{"uid":"not this"}}`

func TestOwnership(t *testing.T) {
	o := ownershipOf([]byte(stored))
	var got, want metav1.ObjectMeta
	o.decode(&got)
	var whole metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(stored), &whole); err != nil {
		t.Fatal(err)
	}
	want.UID, want.DeletionTimestamp = whole.UID, whole.DeletionTimestamp
	want.OwnerReferences, want.Finalizers = whole.OwnerReferences, whole.Finalizers
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// FuzzMetadataFields compares with encoding/json on compact JSON, and must not panic on
// anything else.
func FuzzMetadataFields(f *testing.F) {
	f.Add([]byte(stored))
	f.Add([]byte(`{"metadata":{}}`))
	f.Add([]byte(`{"metadata":{"a":1,"b":[true,null,{"c":"\\"}],"d":"\\\""}}`))
	f.Fuzz(func(t *testing.T, object []byte) {
		got := map[string]string{}
		metadataFields(object, func(name, value []byte) { got[string(name)] = string(value) })

		var compact bytes.Buffer
		var whole struct {
			Metadata map[string]json.RawMessage `json:"metadata"`
		}
		if json.Compact(&compact, object) != nil || !bytes.Equal(compact.Bytes(), object) ||
			!bytes.HasPrefix(object, []byte(`{"metadata":{`)) || bytes.Count(object, metadataStart) != 1 ||
			json.Unmarshal(object, &whole) != nil {
			return
		}
		for name, value := range whole.Metadata {
			if quoted := `"` + name + `":`; !bytes.Contains(object, []byte(quoted)) {
				return // a name that is written with escapes
			}
			if got[name] != string(value) {
				t.Errorf("%s: got %q, want %q", name, got[name], value)
			}
		}
	})
}

func BenchmarkOwnership(b *testing.B) {
	object := []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"7","name":"a","namespace":"b","uid":"6f1c0000-0000-0000-0000-000000000000",` +
		`"creationTimestamp":"2025-01-02T03:04:05Z","managedFields":[{"manager":"kubectl","operation":"Update","apiVersion":"v1","time":"2025-01-02T03:04:05Z",` +
		`"fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:key":{}}}}]},"data":{"key":"` + string(bytes.Repeat([]byte("x"), 1024)) + `"}}`)
	b.ReportAllocs()
	for b.Loop() {
		o := ownershipOf(object)
		if o.uid == nil {
			b.Fatal("no uid")
		}
	}
}
