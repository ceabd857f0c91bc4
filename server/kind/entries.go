package kind

import (
	"encoding/json"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/lru"
)

// setFields does what m.SetManagedFields does. For unstructured objects that method encodes
// each entry as JSON and decodes it again; setFields does not.
func setFields(m metav1.Object, entries []metav1.ManagedFieldsEntry) {
	u, ok := m.(*unstructured.Unstructured)
	if !ok || len(entries) == 0 {
		m.SetManagedFields(entries)
		return
	}
	metadata, _ := u.Object["metadata"].(map[string]any)
	list := make([]any, len(entries))
	for i := range entries {
		entry := unstructuredEntry(&entries[i])
		if entry == nil || metadata == nil {
			m.SetManagedFields(entries)
			return
		}
		list[i] = entry
	}
	metadata["managedFields"] = list
}

// unstructuredEntry is an entry in the form that decoding its JSON would have; nil if the
// entry lacks a field that every write sets.
func unstructuredEntry(e *metav1.ManagedFieldsEntry) map[string]any {
	if e.Time.IsZero() || e.FieldsV1 == nil {
		return nil
	}
	fields := unstructuredFields(e.FieldsV1.GetRawString())
	if fields == nil {
		return nil
	}
	entry := map[string]any{"time": e.Time.UTC().Format(time.RFC3339), "fieldsV1": fields}
	for name, value := range map[string]string{
		"manager": e.Manager, "operation": string(e.Operation), "apiVersion": e.APIVersion,
		"fieldsType": e.FieldsType, "subresource": e.Subresource,
	} {
		if value != "" {
			entry[name] = value
		}
	}
	return entry
}

// decodedFields caches the decoded fields of entries by their JSON. Objects may share them,
// because nobody changes managed fields in place.
var decodedFields = lru.New(64)

func unstructuredFields(raw string) map[string]any {
	if known, ok := decodedFields.Get(raw); ok {
		return known.(map[string]any)
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(raw), &fields); err != nil {
		return nil
	}
	if len(raw) <= largestSet {
		decodedFields.Add(raw, fields)
	}
	return fields
}
