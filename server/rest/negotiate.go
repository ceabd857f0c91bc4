package rest

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
)

const (
	mediaJSON     = "application/json"
	mediaYAML     = "application/yaml"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// form is what a response holds instead of the objects themselves.
type form uint8

const (
	asObject form = iota
	asTable
	asMetadata
	asMetadataList
)

// output is a negotiated response encoding.
type output struct {
	mediaType string
	pretty    bool
	form      form
	metaGV    schema.GroupVersion // version of Table or PartialObjectMetadata
}

// plain tells whether stored JSON can be written as it is.
func (o output) plain() bool {
	return o.mediaType == mediaJSON && o.form == asObject && !o.pretty
}

// offer is what an endpoint can answer with.
type offer struct {
	protobuf bool // objects have a protobuf encoding
	metadata bool // PartialObjectMetadata
	tables   bool
	routed   bool // Accept also has to pass routeAccepts
}

var (
	resourceObjects = offer{protobuf: true, metadata: true, tables: true, routed: true}
	untabledObjects = offer{protobuf: true, metadata: true, routed: true}
	customObjects   = offer{metadata: true, tables: true}
	plainObjects    = offer{protobuf: true} // Status and the like
)

func (o offer) mediaTypes() []string {
	if o.protobuf {
		return []string{mediaJSON, mediaYAML, mediaProtobuf}
	}
	return []string{mediaJSON, mediaYAML}
}

// serializers tells upstream's negotiation which media types there are. Each can stream,
// which is why they have a StreamSerializer; nothing is serialized through them.
func (o offer) serializers() []runtime.SerializerInfo {
	var list []runtime.SerializerInfo
	for _, m := range resourceObjects.mediaTypes() {
		if m == mediaProtobuf && !o.protobuf && !o.metadata {
			continue
		}
		_, sub, _ := strings.Cut(m, "/")
		info := runtime.SerializerInfo{MediaType: m, MediaTypeType: "application", MediaTypeSubType: sub}
		if m != mediaYAML {
			info.StreamSerializer = &runtime.StreamSerializerInfo{}
		}
		list = append(list, info)
	}
	return list
}

// AllowsMediaTypeTransform implements negotiation.EndpointRestrictions with the rules of
// upstream's RequestScope.
func (o offer) AllowsMediaTypeTransform(mimeType, mimeSubType string, target *schema.GroupVersionKind) bool {
	if target == nil {
		return o.protobuf || mimeSubType != "vnd.kubernetes.protobuf"
	}
	if target.Group != metav1.GroupName || (target.Version != "v1" && target.Version != "v1beta1") {
		return false
	}
	switch target.Kind {
	case "Table":
		return o.tables && mimeType == "application" && (mimeSubType == "json" || mimeSubType == "yaml")
	case "PartialObjectMetadata", "PartialObjectMetadataList":
		return o.metadata
	}
	return false
}

// AllowsServerVersion implements negotiation.EndpointRestrictions.
func (o offer) AllowsServerVersion(version string) bool { return o.metadata && version == "v1" }

// AllowsStreamSchema implements negotiation.EndpointRestrictions.
func (o offer) AllowsStreamSchema(s string) bool { return s == "watch" }

// negotiated remembers the outcome for each Accept header seen: clients have few. It
// stops remembering at a bound, so that nobody can fill the memory with odd headers.
var (
	negotiated     sync.Map // acceptKey -> output
	negotiatedSize atomic.Int32
)

const negotiatedMax = 1024

type acceptKey struct {
	accept string
	offer  offer
}

// negotiate picks the response encoding from the Accept header. It is false if the
// client accepts nothing that is offered.
func negotiate(r *http.Request, o offer) (output, bool) {
	key := acceptKey{r.Header.Get("Accept"), o}
	cached, ok := negotiated.Load(key)
	if !ok {
		if cached, ok = negotiateAccept(key.accept, o); !ok {
			return output{}, false
		}
		if negotiatedSize.Load() < negotiatedMax && len(key.accept) < 512 {
			if _, loaded := negotiated.LoadOrStore(key, cached); !loaded {
				negotiatedSize.Add(1)
			}
		}
	}
	out := cached.(output)
	out.pretty = (out.pretty || wantsPretty(r)) && out.mediaType == mediaJSON
	return out, true
}

var forms = map[string]form{"Table": asTable, "PartialObjectMetadata": asMetadata, "PartialObjectMetadataList": asMetadataList}

func negotiateAccept(accept string, o offer) (any, bool) {
	if o.routed && !routeAccepts(accept, o.mediaTypes()) {
		return nil, false
	}
	options, ok := negotiation.NegotiateMediaTypeOptions(accept, o.serializers(), o)
	if !ok {
		return nil, false
	}
	out := output{mediaType: options.Accepted.MediaType, pretty: options.Pretty}
	if options.Convert != nil {
		out.metaGV = options.Convert.GroupVersion()
		out.form = forms[options.Convert.Kind]
	}
	return out, true
}

// wantsPretty follows upstream: ?pretty decides, else known human clients get it.
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

func (q *request) offer() offer {
	switch {
	case q.kind.NoProtobuf:
		return customObjects
	case q.kind.Virtual != nil, q.sub != nil && q.sub.NoTable:
		return untabledObjects
	}
	return resourceObjects
}

func (q *request) negotiateOutput() {
	o, ok := q.offer(), false
	if q.out, ok = negotiate(q.r, o); !ok {
		q.refused = notAcceptable(resourceObjects.mediaTypes()) // also where there is no protobuf
	}
}

// misfit says that a list was asked for where there is an object, or the other way round.
// Upstream finds out when it has the answer in its hands, so after a write is done, and
// names its own type. hub is what there is.
func (q *request) misfit(hub runtime.Object) error {
	message := fmt.Sprintf("you requested PartialObjectMetadata, but the requested object is a list (%T)", hub)
	if q.out.form == asMetadataList {
		message = fmt.Sprintf("you requested PartialObjectMetadataList, but the requested object is not a list (%T)", hub)
	}
	return mediaError(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable, message)
}

// inputMedia is the media type of a body that is an object.
func (q *request) inputMedia() (string, error) {
	header := q.r.Header.Get("Content-Type")
	if header == "" || header == mediaJSON {
		return mediaJSON, nil
	}
	supported := resourceObjects.mediaTypes()
	if m, _, err := mime.ParseMediaType(header); err == nil {
		for _, s := range supported {
			if m == s && (m != mediaProtobuf || !q.kind.NoProtobuf || q.sub != nil && q.sub.Codec != nil) {
				return m, nil
			}
		}
	}
	return "", unsupportedMedia(supported)
}

// includeObject is the Table option of that name; upstream's default is Metadata.
func includeObject(values url.Values) (metav1.IncludeObjectPolicy, error) {
	switch p := metav1.IncludeObjectPolicy(values.Get("includeObject")); p {
	case "":
		return metav1.IncludeMetadata, nil
	case metav1.IncludeObject, metav1.IncludeMetadata, metav1.IncludeNone:
		return p, nil
	default:
		return "", badIncludeObject(string(p))
	}
}
