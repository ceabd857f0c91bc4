package rest

import (
	"encoding/json"

	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditinternal "k8s.io/apiserver/pkg/apis/audit"
	apiaudit "k8s.io/apiserver/pkg/audit"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/response"
)

// The audit log's policy may ask for the objects in requests and responses. Only then are objects
// encoded for the audit log.

// event returns the audit event of this request if its policy asks for level or more, else nil.
func (c *call) event(level auditinternal.Level) *apiaudit.AuditContext {
	if !c.api.o.Audited {
		return nil
	}
	ac := apiaudit.AuditContextFrom(c.ctx)
	if !ac.Enabled() || ac.GetEventLevel().Less(level) {
		return nil
	}
	return ac
}

// auditObject notes the object, in hub form, that came in the version gv.
func (q *request) auditObject(obj runtime.Object, gv schema.GroupVersion) {
	if q.event(auditinternal.LevelMetadata) != nil {
		apiaudit.LogRequestObject(q.ctx, obj, gv, q.gvr(), q.info.Subresource, response.AuditSerializer{Codec: q.codec()})
	}
}

// auditDeleteOptions notes the body of a deletion.
func (q *request) auditDeleteOptions(options *metav1.DeleteOptions, gv schema.GroupVersion) {
	if q.event(auditinternal.LevelMetadata) != nil {
		apiaudit.LogRequestObject(q.ctx, options, gv, q.gvr(), q.info.Subresource, metainternalversionscheme.Codecs)
	}
}

// auditPatch notes a patch, as JSON. Upstream takes every patch for JSON, and loses the event of
// a patch that is something else.
func (p *patching) auditPatch() {
	q := p.q
	if q.event(auditinternal.LevelRequest) == nil {
		return
	}
	patch := p.patch
	if !json.Valid(patch) {
		patch = p.patchAsJSON()
	}
	apiaudit.LogRequestPatch(q.ctx, patch)
}

// patchAsJSON converts a configuration. A patch that cannot be read becomes a string.
func (p *patching) patchAsJSON() []byte {
	if p.applies() {
		if config, _, err := p.configuration(); err == nil {
			if patch, err := json.Marshal(config); err == nil {
				return patch
			}
		}
	}
	text, _ := json.Marshal(string(p.patch)) // encoding a string cannot fail
	return text
}

// auditDeprecated notes that the version is deprecated (upstream: endpoints/metrics).
func (c *call) auditDeprecated(v *kind.Version) {
	if c.event(auditinternal.LevelMetadata) == nil {
		return
	}
	ctx := c.ctx
	apiaudit.AddAuditAnnotation(ctx, "k8s.io/deprecated", "true")
	if v.RemovedIn != "" {
		apiaudit.AddAuditAnnotation(ctx, "k8s.io/removed-release", v.RemovedIn)
	}
}

// auditAnswer notes an answer that is not an object in the log.
func (c *call) auditAnswer(obj runtime.Object) {
	if c.event(auditinternal.LevelMetadata) != nil {
		response.AuditAnswer(c.ctx, obj)
	}
}

// auditBody notes an answer as plain JSON, which render makes from stored bytes. Where the event is logged, managed
// fields are removed if a rule of the policy says so. Nothing is noted for a Kind that is Unaudited, as kube-apiserver
// notes nothing of the answers of extension servers.
func (q *request) auditBody(render func(plain response.Output) ([]byte, error)) {
	ac := q.event(auditinternal.LevelRequestResponse)
	if ac == nil || q.kind.Unaudited {
		return
	}
	plain := q.out
	plain.MediaType, plain.Pretty = response.MediaJSON, false
	if body, err := render(plain); err == nil { // if render fails here, it also fails for the client
		ac.LogResponseObject(nil, &runtime.Unknown{Raw: body, ContentType: response.MediaJSON})
	}
}
