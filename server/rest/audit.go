package rest

import (
	"bytes"
	"context"
	"encoding/json"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"

	"github.com/plinth-io/plinth/server/kind"
)

// What the audit log's policy asks for beyond who, when and what for: the objects that came
// and went. Where nobody asks, none of it is made.

// event is the audit log's of this request if it has everything of level; nil if not.
func (q *request) event(level auditinternal.Level) *audit.AuditContext {
	if !q.api.o.Audited {
		return nil
	}
	ac := audit.AuditContextFrom(q.r.Context())
	if !ac.Enabled() || ac.Event.Level.Less(level) {
		return nil
	}
	return ac
}

// auditObject notes the object, in hub form, that came in the version gv.
func (q *request) auditObject(obj runtime.Object, gv schema.GroupVersion) {
	if q.event(auditinternal.LevelMetadata) != nil {
		q.auditInput(obj, gv, audited{q.codec()})
	}
}

// auditDeleteOptions notes the body of a deletion.
func (q *request) auditDeleteOptions(options *metav1.DeleteOptions, gv schema.GroupVersion) {
	if q.event(auditinternal.LevelMetadata) != nil {
		q.auditInput(options, gv, metainternalversionscheme.Codecs)
	}
}

func (q *request) auditInput(obj runtime.Object, gv schema.GroupVersion, as runtime.NegotiatedSerializer) {
	audit.LogRequestObject(q.r.Context(), obj, gv, q.gvr(), q.info.Subresource, as)
}

// auditPatch notes a patch. Upstream takes each for JSON, and loses the event of a patch that
// is none.
func (p *patching) auditPatch() {
	q := p.q
	if q.event(auditinternal.LevelRequest) == nil {
		return
	}
	patch := p.patch
	if !json.Valid(patch) {
		patch = p.patchAsJSON()
	}
	audit.LogRequestPatch(q.r.Context(), patch)
}

// patchAsJSON is a configuration in YAML, or what cannot be read as a string.
func (p *patching) patchAsJSON() []byte {
	if p.type_ == types.ApplyYAMLPatchType {
		if config, err := decodeConfiguration(p.patch, p.q.api.o.MaxBodyBytes); err == nil {
			if patch, err := json.Marshal(config); err == nil {
				return patch
			}
		}
	}
	text, _ := json.Marshal(string(p.patch)) // a string can be encoded always
	return text
}

// auditDeprecated notes that the version is deprecated (upstream: endpoints/metrics).
func (q *request) auditDeprecated(v *kind.Version) {
	if q.event(auditinternal.LevelMetadata) == nil {
		return
	}
	ctx := q.r.Context()
	audit.AddAuditAnnotation(ctx, "k8s.io/deprecated", "true")
	if v.RemovedIn != "" {
		audit.AddAuditAnnotation(ctx, "k8s.io/removed-release", v.RemovedIn)
	}
}

// auditAnswer notes an answer that is no object in the log.
func (q *request) auditAnswer(obj runtime.Object) {
	if q.event(auditinternal.LevelMetadata) != nil {
		auditAnswer(q.r.Context(), obj)
	}
}

func auditAnswer(ctx context.Context, obj runtime.Object) {
	audit.LogResponseObject(ctx, obj, obj.GetObjectKind().GroupVersionKind().GroupVersion(), audited{})
}

// auditBody notes an answer that render makes as plain JSON, of stored bytes: upstream's
// function would have to be given an object.
func (q *request) auditBody(render func(q *request) ([]byte, error)) {
	ac := q.event(auditinternal.LevelRequestResponse)
	if ac == nil {
		return
	}
	plain := *q
	plain.out.mediaType, plain.out.pretty = mediaJSON, false
	body, err := render(&plain)
	if err == nil && ac.RequestAuditConfig.OmitManagedFields {
		body, err = withoutManagedFields(body)
	}
	if err == nil { // else the client gets the same error
		ac.Event.ResponseObject = &runtime.Unknown{Raw: body, ContentType: mediaJSON}
	}
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
