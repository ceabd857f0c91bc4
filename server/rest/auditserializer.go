package rest

import (
	"encoding/json"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/plinth-io/plinth/server/kind"
)

// audited is a runtime.NegotiatedSerializer for upstream's audit functions, which only want
// JSON of it: of objects in hub form, or as they are if there is no codec.
type audited struct{ codec kind.Codec }

var _ runtime.NegotiatedSerializer = audited{}

func (audited) SupportedMediaTypes() []runtime.SerializerInfo {
	return []runtime.SerializerInfo{{MediaType: mediaJSON}}
}

func (a audited) EncoderForVersion(_ runtime.Encoder, gv runtime.GroupVersioner) runtime.Encoder {
	version, _ := gv.(schema.GroupVersion)
	return auditEncoder{a.codec, version}
}

func (audited) DecoderToVersion(d runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
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
