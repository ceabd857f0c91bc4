package response

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
)

// Media types of objects.
const (
	MediaJSON     = "application/json"
	MediaYAML     = "application/yaml"
	MediaProtobuf = "application/vnd.kubernetes.protobuf"
	MediaCBOR     = "application/cbor"
)

// mediaCBORSequence is the media type of events in CBOR, one after the other.
const mediaCBORSequence = "application/cbor-seq"

// Encoding is how objects are encoded within bodies and events.
type Encoding uint8

// The Encodings of objects. YAML is made of JSON.
const (
	JSON Encoding = iota
	Protobuf
	CBOR
)

// Form is what a response holds instead of the objects themselves.
type Form uint8

// The Forms of an answer.
const (
	AsObject Form = iota
	AsTable
	AsMetadata
	AsMetadataList
)

// Output is a negotiated response encoding.
type Output struct {
	MediaType   string
	Pretty      bool
	Form        Form
	MetaVersion schema.GroupVersion // of Table or PartialObjectMetadata
}

// Encoding is the encoding of objects that the body is made of.
func (o Output) Encoding() Encoding {
	switch o.MediaType {
	case MediaProtobuf:
		return Protobuf
	case MediaCBOR:
		return CBOR
	}
	return JSON
}

// EventsType is the Content-Type of a stream of events.
func (o Output) EventsType() string {
	switch o.MediaType {
	case MediaJSON:
		return MediaJSON
	case MediaCBOR:
		return mediaCBORSequence
	}
	return o.MediaType + watchParameter
}

// watchParameter is what the media type of a stream of events ends with.
const watchParameter = ";stream=watch"

// Plain tells whether stored JSON can be written as it is.
func (o Output) Plain() bool {
	return o.MediaType == MediaJSON && o.Form == AsObject && !o.Pretty
}

// Offer says what an endpoint can answer with.
type Offer struct {
	Protobuf bool // objects have a protobuf encoding
	CBOR     bool // the feature gate CBORServingAndStorage is on
	Metadata bool // PartialObjectMetadata
	Tables   bool
	Routed   bool // Accept also has to pass RouteAccepts
}

// What endpoints offer: resources with and without Tables, custom resources, and Status and
// other objects of the API machinery.
var (
	ResourceObjects = Offer{Protobuf: true, Metadata: true, Tables: true, Routed: true}
	UntabledObjects = Offer{Protobuf: true, Metadata: true, Routed: true}
	CustomObjects   = Offer{Metadata: true, Tables: true}
	StatusObjects   = Offer{Protobuf: true}
)

// WithCBOR is the same offer with CBOR, if that is on.
func (o Offer) WithCBOR(on bool) Offer {
	o.CBOR = on
	return o
}

// MediaTypes lists the media types of whole objects.
func (o Offer) MediaTypes() []string {
	list := []string{MediaJSON, MediaYAML}
	if o.Protobuf {
		list = append(list, MediaProtobuf)
	}
	if o.CBOR {
		list = append(list, MediaCBOR)
	}
	return list
}

// StreamTypes lists the media types of events.
func (o Offer) StreamTypes() []string {
	list := []string{MediaJSON + watchParameter, MediaProtobuf + watchParameter}
	if o.CBOR {
		list = append(list, mediaCBORSequence)
	}
	return list
}

// serializers tells upstream's negotiation which media types there are. Each can stream,
// which is why they have a StreamSerializer; nothing is serialized through them.
func (o Offer) serializers() []runtime.SerializerInfo {
	var list []runtime.SerializerInfo
	for _, m := range ResourceObjects.WithCBOR(o.CBOR).MediaTypes() {
		if m == MediaProtobuf && !o.Protobuf && !o.Metadata {
			continue
		}
		_, sub, _ := strings.Cut(m, "/")
		info := runtime.SerializerInfo{MediaType: m, MediaTypeType: "application", MediaTypeSubType: sub}
		if m != MediaYAML {
			info.StreamSerializer = &runtime.StreamSerializerInfo{}
		}
		list = append(list, info)
	}
	return list
}

// AllowsMediaTypeTransform implements negotiation.EndpointRestrictions with the rules of
// upstream's RequestScope.
func (o Offer) AllowsMediaTypeTransform(mimeType, mimeSubType string, target *schema.GroupVersionKind) bool {
	if target == nil {
		return o.Protobuf || mimeSubType != "vnd.kubernetes.protobuf"
	}
	if target.Group != metav1.GroupName || (target.Version != "v1" && target.Version != "v1beta1") {
		return false
	}
	switch target.Kind {
	case "Table":
		return o.Tables && mimeType == "application" && (mimeSubType == "json" || mimeSubType == "yaml")
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return o.Metadata
	}
	return false
}

// AllowsServerVersion implements negotiation.EndpointRestrictions.
func (o Offer) AllowsServerVersion(version string) bool { return o.Metadata && version == "v1" }

// AllowsStreamSchema implements negotiation.EndpointRestrictions.
func (o Offer) AllowsStreamSchema(s string) bool { return s == "watch" }

// negotiated remembers the outcome for each Accept header seen, because clients send the same
// few. negotiatedMax bounds it, so that odd headers cannot fill the memory.
var (
	negotiated     sync.Map // acceptKey -> Output
	negotiatedSize atomic.Int32
)

const negotiatedMax = 1024

type acceptKey struct {
	accept string
	offer  Offer
}

// Negotiate picks the response encoding from the Accept header. It is false if the
// client accepts nothing that is offered.
func Negotiate(r *http.Request, o Offer) (Output, bool) {
	key := acceptKey{r.Header.Get("Accept"), o}
	cached, ok := negotiated.Load(key)
	if !ok {
		if cached, ok = negotiateAccept(key.accept, o); !ok {
			return Output{}, false
		}
		if negotiatedSize.Load() < negotiatedMax && len(key.accept) < 512 {
			if _, loaded := negotiated.LoadOrStore(key, cached); !loaded {
				negotiatedSize.Add(1)
			}
		}
	}
	out := cached.(Output)
	out.Pretty = (out.Pretty || wantsPretty(r)) && out.MediaType == MediaJSON
	return out, true
}

var forms = map[string]Form{"Table": AsTable, "PartialObjectMetadata": AsMetadata, "PartialObjectMetadataList": AsMetadataList}

func negotiateAccept(accept string, o Offer) (any, bool) {
	if o.Routed && !RouteAccepts(accept, o.MediaTypes()) {
		return nil, false
	}
	options, ok := negotiation.NegotiateMediaTypeOptions(accept, o.serializers(), o)
	if !ok {
		return nil, false
	}
	out := Output{MediaType: options.Accepted.MediaType, Pretty: options.Pretty}
	if options.Convert != nil {
		out.MetaVersion = options.Convert.GroupVersion()
		out.Form = forms[options.Convert.Kind]
	}
	return out, true
}

// wantsPretty tells whether JSON is indented. As in upstream the parameter pretty decides, else
// the user agent: people use curl, wget and browsers.
func wantsPretty(r *http.Request) bool {
	if strings.Contains(r.URL.RawQuery, "pretty") {
		if v := r.URL.Query().Get("pretty"); v != "" {
			pretty, _ := strconv.ParseBool(v)
			return pretty
		}
	}
	agent := r.UserAgent()
	return strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// WrongForm is the answer to a client that asked for a list's metadata where there is an
// object, or the other way round. Upstream notices that when it encodes the answer, so after a
// write is done, and names the answer's internal type; hub is of that type.
func (o Output) WrongForm(hub runtime.Object) error {
	message := fmt.Sprintf("you requested PartialObjectMetadata, but the requested object is a list (%T)", hub)
	if o.Form == AsMetadataList {
		message = fmt.Sprintf("you requested PartialObjectMetadataList, but the requested object is not a list (%T)", hub)
	}
	return mediaError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, message)
}
