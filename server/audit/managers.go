package audit

import (
	"bytes"
	"encoding/json"

	"k8s.io/apimachinery/pkg/runtime"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	apiaudit "k8s.io/apiserver/pkg/audit"
)

// omitting is a sink for the rules of a policy that leave out managed fields. Upstream takes them out of objects, and
// plinth notes answers as the bytes that are stored.
type omitting struct{ apiaudit.Sink }

func (s omitting) ProcessEvents(events ...*auditinternal.Event) bool {
	for _, e := range events {
		if e.ResponseObject == nil {
			continue
		}
		body, err := withoutManagedFields(e.ResponseObject.Raw)
		if err != nil {
			e.ResponseObject = nil
			continue
		}
		e.ResponseObject = &runtime.Unknown{Raw: body, ContentType: e.ResponseObject.ContentType}
	}
	return s.Sink.ProcessEvents(events...)
}

// withoutManagedFields takes the managed fields out of an object, a list or a table.
func withoutManagedFields(body []byte) ([]byte, error) {
	var object map[string]any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&object); err != nil {
		return nil, err
	}
	forgetManagers(object)
	items, _ := object["items"].([]any)
	for _, item := range items {
		forgetManagers(item)
	}
	rows, _ := object["rows"].([]any)
	for _, row := range rows {
		if row, ok := row.(map[string]any); ok {
			forgetManagers(row["object"])
		}
	}
	return json.Marshal(object)
}

func forgetManagers(object any) {
	if object, ok := object.(map[string]any); ok {
		if metadata, ok := object["metadata"].(map[string]any); ok {
			delete(metadata, "managedFields")
		}
	}
}
