package response

import (
	"context"
	"encoding/json"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiaudit "k8s.io/apiserver/pkg/audit"

	"github.com/plinth-io/plinth/server/kind"
)

// AuditAnswer notes an answer that is not an object in the log in the audit event. obj has its kind
// and apiVersion set.
func AuditAnswer(ctx context.Context, obj runtime.Object) {
	if status, ok := obj.(*metav1.Status); ok {
		obj = unquoted(status)
	}
	apiaudit.LogResponseObject(ctx, obj, obj.GetObjectKind().GroupVersionKind().GroupVersion(), AuditSerializer{})
}

// unquoted is a Status without what an error about a patch quotes: the whole object, which may be a Secret, as the
// patch would make it. The message of an error is also in events that have only metadata.
func unquoted(s *metav1.Status) *metav1.Status {
	if s.Details == nil {
		return s
	}
	const patch = "patch: Invalid value: <contents redacted>"
	for i, c := range s.Details.Causes {
		if c.Type == metav1.CauseTypeFieldValueInvalid && c.Field == "patch" {
			s = s.DeepCopy()
			s.Message = patch
			s.Details.Causes[i].Message = "Invalid value: <contents redacted>"
		}
	}
	return s
}

// AuditSerializer is a runtime.NegotiatedSerializer for upstream's audit functions, which use only
// its JSON encoder. With a Codec it encodes objects in hub form; without a Codec it encodes objects
// as they are.
type AuditSerializer struct{ Codec kind.Codec }

var _ runtime.NegotiatedSerializer = AuditSerializer{}

func (AuditSerializer) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{{MediaType: MediaJSON}}
}

func (a AuditSerializer) EncoderForVersion(_ runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	version, _ := gv.(schema.GroupVersion)
	return auditEncoder{a.Codec, version}
}

func (AuditSerializer) DecoderToVersion(d runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return d
}

// auditEncoder encodes objects in one version.
type auditEncoder struct {
	codec kind.Codec
	gv    schema.GroupVersion
}

func (e auditEncoder) Encode(obj runtime.Object, w io.Writer) error {
	if e.codec != nil {
		versioned, err := e.codec.Versioned(obj, e.gv)
		if err != nil {
			return err
		}
		obj = versioned
	}
	return json.NewEncoder(w).Encode(obj)
}

func (e auditEncoder) Identifier() runtime.Identifier {
	return runtime.Identifier("audit/" + e.gv.String())
}
