package rest_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/server/rest"
)

const (
	inJSON     = "application/json"
	inYAML     = "application/yaml"
	inProtobuf = "application/vnd.kubernetes.protobuf"

	tableV1      = "application/json;as=Table;v=v1;g=meta.k8s.io"
	tableV1beta1 = "application/json;as=Table;v=v1beta1;g=meta.k8s.io"

	deploymentsPath = "/apis/apps/v1/namespaces/default/deployments"
	reviews         = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

	deployment = `{"metadata":{"name":"d"},"spec":{"replicas":2,"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`
	review     = `{"spec":{"nonResourceAttributes":{"path":"/x","verb":"get"}}}`

	// Upstream's messages for media types that are not acceptable, from its router, from its router
	// of lists and watches, and from its handlers.
	routerRefuses      = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	listsRouterRefuses = routerRefuses + ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
	handlerRefuses     = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	bodyRefused        = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf"
	badInclude         = `Unable to convert to Table as requested: includeObject: Invalid value: "Some": must be 'Metadata', 'Object', 'None', or empty`
)

// metadataOf is the Accept header of a client that wants only metadata.
func metadataOf(media, kind, version string) string {
	return media + ";as=" + kind + ";v=" + version + ";g=meta.k8s.io"
}

// encoding is one row: a request and its expected answer.
type encoding struct {
	name    string
	request string // METHOD path
	headers []string
	body    string

	code    int
	media   string   // of the answer; empty: application/json
	head    []string // Name=value of the answer's headers
	message string   // of a Status; empty: whatever
	fields  []string // path=value in the answer, whatever it is encoded in
	text    []string // what the answer contains as it is
	not     []string // what it does not contain
}

func accept(media ...string) []string { return []string{"Accept", strings.Join(media, ",")} }

func sends(media, accepts string) []string {
	return []string{"Content-Type", media, "Accept", accepts}
}

// TestEncodings has a row for each statement of
// https://kubernetes.io/docs/reference/using-api/api-concepts/#alternate-representations-of-resources
// and #receiving-resources-as-tables, and for what kube-apiserver does where they are
// silent.
func TestEncodings(t *testing.T) {
	aloneAndShared(t, awayOnOthers, rest.Options{MaxBodyBytes: 1 << 20}, func(t *testing.T, h *harness) {
		h.t = t
		h.do("POST", configMaps, `{"metadata":{"name":"a","labels":{"l":"1"}},"data":{"key":"<&> ü"}}`).want(201)
		h.do("POST", configMaps, configMap("big", strings.Repeat("x", 140_000))).want(201)
		h.do("POST", deploymentsPath, deployment).want(201)
		for _, rows := range [][]encoding{
			defaultRows, prettyRows, yamlRows, protobufRows, negotiationRows, refusedRows,
			tableRows, metadataRows, inputRows, compressionRows,
		} {
			for _, row := range rows {
				t.Run(row.name, func(t *testing.T) { row.check(t, h) })
			}
		}
	})
}

func (row encoding) check(t *testing.T, h *harness) {
	h.t = t
	method, path, _ := strings.Cut(row.request, " ")
	a := h.do(method, path, row.body, row.headers...)
	if a.code != row.code {
		t.Fatalf("got status %d, want %d: %s", a.code, row.code, a.body)
	}
	if media := a.head.Get("Content-Type"); media != row.media && (row.media != "" || media != inJSON) {
		t.Errorf("Content-Type is %q", media)
	}
	for _, header := range row.head {
		name, value, _ := strings.Cut(header, "=")
		if got := a.head.Get(name); got != value {
			t.Errorf("header %s is %q, want %q", name, got, value)
		}
	}
	for _, text := range row.text {
		if !strings.Contains(a.body, text) {
			t.Errorf("no %q in %q", text, a.body)
		}
	}
	for _, text := range row.not {
		if strings.Contains(a.body, text) {
			t.Errorf("%q in %q", text, a.body)
		}
	}
	if row.message == "" && row.fields == nil {
		return
	}
	b := a.asJSON()
	if row.message != "" && (b.get("message") != row.message || b.get("kind") != "Status" || b.get("code") != fmt.Sprint(row.code)) {
		t.Errorf("got %s, want message %q", b.body, row.message)
	}
	for _, field := range row.fields {
		path, value, _ := strings.Cut(field, "=")
		if got := b.get(strings.Split(path, ".")...); got != value {
			t.Errorf("%s is %q, want %q in %s", path, got, value, b.body)
		}
	}
}

// everything has the types of the API, and those of tables and metadata.
var everything = func() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(scheme.AddToScheme(s))
	utilruntime.Must(metav1.AddMetaToScheme(s))
	utilruntime.Must(metav1beta1.AddMetaToScheme(s))
	return s
}()

// asJSON is the same answer in JSON, which a.get reads. Protobuf is decoded by its own
// library, which refuses what is not well formed.
func (a answer) asJSON() answer {
	a.t.Helper()
	switch a.head.Get("Content-Type") {
	case inYAML:
		b, err := yaml.YAMLToJSONStrict([]byte(a.body))
		if err != nil {
			a.t.Fatal(err)
		}
		a.body = string(b)
	case inProtobuf:
		a.body = fromProtobuf(a.t, []byte(a.body))
	case inCBOR:
		if !strings.HasPrefix(a.body, tagged) {
			a.t.Errorf("no tag in %x", a.body)
		}
		a.body = fromCBOR(a.t, []byte(a.body))
	}
	return a
}

func fromProtobuf(t testing.TB, body []byte) string {
	t.Helper()
	obj, gvk, err := protobuf.NewSerializer(everything, everything).Decode(body, nil, nil)
	if err != nil {
		t.Fatalf("decode %q: %v", body, err)
	}
	obj.GetObjectKind().SetGroupVersionKind(*gvk)
	b, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// toProtobuf encodes an object that is given in JSON.
func toProtobuf(object string) string {
	obj, _, err := serializer.NewCodecFactory(everything).UniversalDeserializer().Decode([]byte(object), nil, nil)
	if err != nil {
		panic(err)
	}
	var b strings.Builder
	if err := protobuf.NewSerializer(everything, everything).Encode(obj, &b); err != nil {
		panic(err)
	}
	return b.String()
}

// TestCompression looks at the headers and the content of compressed answers, and at the size from
// which answers are compressed.
// https://kubernetes.io/docs/reference/using-api/api-concepts/#response-compression
func TestCompression(t *testing.T) {
	h := newHarness(t, rest.Options{})
	h.do("POST", configMaps, configMap("edge", "")).want(201)
	for _, path := range []string{configMaps + "/edge", configMaps} {
		for _, media := range []string{inJSON, inYAML, inProtobuf} {
			for _, size := range []int{128 << 10, 128<<10 + 1} {
				h.pad(path, media, size)
				plain := h.do("GET", path, "", "Accept", media, "Accept-Encoding", "identity").want(200)
				packed := h.do("GET", path, "", "Accept", media, "Accept-Encoding", "gzip").want(200)
				if len(plain.body) != size || plain.head.Get("Vary") != "" {
					t.Fatalf("%s in %s: %d bytes, want %d", path, media, len(plain.body), size)
				}
				if size == 128<<10 {
					if packed.body != plain.body || packed.head.Get("Content-Encoding") != "" {
						t.Errorf("%s in %s: %d bytes are compressed", path, media, size)
					}
					continue
				}
				if packed.head.Get("Content-Encoding") != "gzip" || packed.head.Get("Vary") != "Accept-Encoding" {
					t.Fatalf("%s in %s: headers %v", path, media, packed.head)
				}
				if gunzip(t, packed.body) != plain.body {
					t.Errorf("%s in %s: the compressed answer is another", path, media)
				}
			}
		}
	}
}

// pad pads the object so that the answer is size bytes long.
func (h *harness) pad(path, media string, size int) {
	h.t.Helper()
	value := size - 2000
	for range 5 {
		h.do("PUT", configMaps+"/edge", configMap("edge", strings.Repeat("x", value))).want(200)
		got := len(h.do("GET", path, "", "Accept", media, "Accept-Encoding", "identity").want(200).body)
		if got == size {
			return
		}
		value += size - got
	}
	h.t.Fatalf("%s in %s cannot be made %d bytes long", path, media, size)
}

func gunzip(t *testing.T, body string) string {
	t.Helper()
	r, err := gzip.NewReader(strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
