package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	kjson "sigs.k8s.io/json"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/sqlstore"
)

const (
	inCBOR      = "application/cbor"
	applyCBOR   = "application/apply-patch+cbor"
	widgetsPath = "/apis/example.com/v1/namespaces/default/widgets"

	// Upstream's messages with the feature gate CBORServingAndStorage.
	cborRouterRefuses      = "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor"
	cborListsRouterRefuses = cborRouterRefuses + ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch, application/cbor-seq"
	cborHandlerRefuses     = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor"
	cborBodyRefused        = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/cbor"
)

// tagged is what each body in CBOR begins with.
const tagged = "\xd9\xd9\xf7"

// fromCBOR is a body in JSON. Its decoder is upstream's, which refuses what is not well formed.
func fromCBOR(t testing.TB, body []byte) string {
	t.Helper()
	var object map[string]any
	if err := direct.Unmarshal(body, &object); err != nil {
		t.Fatalf("decode %x: %v", body, err)
	}
	b, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// toCBOR encodes an object that is given in JSON.
func toCBOR(object string) string {
	var v any
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(object), &v); err != nil {
		panic(err)
	}
	b, err := direct.Marshal(v)
	if err != nil {
		panic(err)
	}
	return tagged + string(b)
}

// newCBORHarness serves CBOR, and has the objects that the rows are about.
func newCBORHarness(t *testing.T, from ...away) *harness {
	h := newHarness(t, rest.Options{CBOR: true, MaxBodyBytes: 1 << 20}, from...)
	h.do("POST", configMaps, `{"metadata":{"name":"a","labels":{"l":"1"}},"data":{"key":"<&> ü"}}`).want(201)
	h.do("POST", configMaps, configMap("big", strings.Repeat("x", 140_000))).want(201)
	h.do("POST", deploymentsPath, deployment).want(201)
	h.serveDefinitions()
	h.define(widgets(t, "example.com"))
	h.do("POST", widgetsPath, widget).want(201)
	return h
}

const widget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"color":"red","replicas":2}}`

// TestCBOR has the rows of TestEncodings for a server with the feature gate CBORServingAndStorage.
// They follow k8s.io/apiserver/pkg/endpoints and k8s.io/apiextensions-apiserver/pkg/apiserver.
func TestCBOR(t *testing.T) {
	h := newCBORHarness(t)
	for _, rows := range [][]encoding{cborRows, cborMetadataRows, cborNegotiationRows, cborInputRows, cborRefusedRows, cborCustomRows} {
		for _, row := range rows {
			t.Run(row.name, func(t *testing.T) { row.check(t, h) })
		}
	}
}

// rich has an object for each type of field whose encoding in CBOR is its own: bytes, times, quantities,
// numbers that may be texts, and values of any type.
var rich = []struct{ path, name, body string }{
	{configMaps, "bytes", `{"metadata":{"name":"bytes","annotations":{"a":"ü"}},"data":{"k":"v"},"binaryData":{"b":"AP//gA=="}}`},
	{"/api/v1/namespaces/default/secrets", "s", `{"metadata":{"name":"s"},"stringData":{"password":"x"}}`},
	{"/api/v1/namespaces/default/services", "svc", `{"metadata":{"name":"svc"},"spec":{"clusterIP":"None","ports":[{"name":"a","port":80,"targetPort":"http"},{"name":"b","port":81,"targetPort":8081}]}}`},
	{"/api/v1/nodes", "n", `{"metadata":{"name":"n"},"status":{"capacity":{"cpu":"1500m","memory":"1Gi"}}}`},
	{"/apis/coordination.k8s.io/v1/namespaces/default/leases", "l", `{"metadata":{"name":"l"},"spec":{"holderIdentity":"h","renewTime":"2024-01-02T03:04:05.000006Z"}}`},
	{"/apis/apps/v1/namespaces/default/controllerrevisions", "r", `{"metadata":{"name":"r"},"revision":7,"data":{"spec":{"n":1,"f":1.5,"list":[true,null,"x"]}}}`},
	{"/apis/rbac.authorization.k8s.io/v1/clusterroles", "c", `{"metadata":{"name":"c"},"rules":[{"verbs":["get"],"nonResourceURLs":["/x"]}]}`},
	{"/apis/apps/v1/namespaces/default/deployments", "rich", `{"metadata":{"name":"rich"},"spec":{"replicas":0,"strategy":{"rollingUpdate":{"maxSurge":"25%","maxUnavailable":1}},"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"0.5"}}}]}}}}`},
	{widgetsPath, "rich", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"rich","labels":{"a":"b"}},"spec":{"color":"blue","replicas":0}}`},
}

// TestCBORIsJSON compares answers in CBOR with those in JSON: objects, lists and pages, and their
// metadata.
func TestCBORIsJSON(t *testing.T) {
	h := newCBORHarness(t)
	same := func(path, json, cbor string) {
		t.Helper()
		want, got := h.do("GET", path, "", "Accept", json).want(200), h.do("GET", path, "", "Accept", cbor).want(200)
		if got.head.Get("Content-Type") != inCBOR {
			t.Fatalf("%s: Content-Type is %q", path, got.head.Get("Content-Type"))
		}
		if diff := cmp.Diff(decoded(t, want.body), decoded(t, got.asJSON().body)); diff != "" {
			t.Errorf("%s (-JSON +CBOR):\n%s", path, diff)
		}
	}
	paths := []string{definitionsPath + "/widgets.example.com", definitionsPath, configMaps + "?limit=1", "/api/v1/namespaces/none/configmaps", widgetsPath + "?limit=1", "/apis/example.com/v1/namespaces/none/widgets"}
	for _, object := range rich {
		h.do("POST", object.path, object.body).want(201)
		paths = append(paths, object.path+"/"+object.name, object.path)
	}
	for _, path := range paths {
		same(path, inJSON, inCBOR)
		kind := "PartialObjectMetadata"
		if decoded(t, h.do("GET", path, "").want(200).body)["items"] != nil {
			kind += "List"
		}
		same(path, metadataOf(inJSON, kind, "v1"), metadataOf(inCBOR, kind, "v1"))
	}
}

func decoded(t *testing.T, body string) (object map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &object); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return object
}

// TestCBORLongList wants the head of a list to be right for each size of its length.
func TestCBORLongList(t *testing.T) {
	h := newHarness(t, rest.Options{CBOR: true})
	for i := range 300 {
		h.do("POST", configMaps, configMap("c"+strings.Repeat("0", 3-len(itoa(i)))+itoa(i), "1")).want(201)
		if i+1 != 23 && i+1 != 24 && i+1 != 255 && i+1 != 256 && i+1 != 300 {
			continue
		}
		a := h.do("GET", configMaps, "", "Accept", inCBOR).want(200).asJSON()
		if a.get("items", itoa(i), "metadata", "name") == "" || a.get("items", itoa(i+1)) != "" {
			t.Errorf("a list of %d items: %.300s", i+1, a.body)
		}
	}
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

// TestCBOROff wants a server without the feature gate to know nothing of CBOR.
func TestCBOROff(t *testing.T) {
	h := newHarness(t, rest.Options{}, nothingStays)
	h.serveDefinitions()
	h.define(widgets(t, "example.com"))
	h.do("POST", widgetsPath, widget).want(201)
	for _, a := range []answer{
		h.do("GET", widgetsPath+"/w", "", "Accept", inCBOR).want(http.StatusNotAcceptable),
		h.do("GET", widgetsPath, "", "Accept", inCBOR).want(http.StatusNotAcceptable),
		h.do("POST", widgetsPath, toCBOR(widget), "Content-Type", inCBOR).want(http.StatusUnsupportedMediaType),
		h.do("PATCH", widgetsPath+"/w?fieldManager=m", toCBOR(widget), "Content-Type", applyCBOR).want(http.StatusUnsupportedMediaType),
		h.do("PATCH", configMaps+"/a?fieldManager=m", toCBOR(configMap("a", "1")), "Content-Type", applyCBOR).want(http.StatusUnsupportedMediaType),
	} {
		if strings.Contains(a.body, "cbor") {
			t.Errorf("CBOR is offered: %s", a.body)
		}
	}
}

// TestCBORConversion wants objects that a webhook converts to be the same in CBOR, and to be converted
// once for both encodings.
func TestCBORConversion(t *testing.T) {
	h := newHarnessWith(t, "sqlite://:memory:", sqlstore.Options{StateBytes: 1 << 30}, rest.Options{CBOR: true})
	c := newConversionCase(t, h)
	c.define(`"v1","v1beta1"`)
	c.do("POST", hookedBeta, toCBOR(hookObject("v1beta1", "a", `"hostPort":"h:1"`)), "Content-Type", inCBOR).want(201)
	c.do("POST", hooked, toCBOR(hookObject("v1", "b", `"host":"g","port":"2"`)), "Content-Type", inCBOR).want(201)
	c.hook.called()
	for _, path := range []string{hooked, hooked + "/a", hooked + "/b", hookedBeta, hookedBeta + "/a"} {
		want, got := c.do("GET", path, "").want(200), c.do("GET", path, "", "Accept", inCBOR).want(200)
		if diff := cmp.Diff(decoded(t, want.body), decoded(t, got.asJSON().body)); diff != "" {
			t.Errorf("%s (-JSON +CBOR):\n%s", path, diff)
		}
	}
	c.calls("all that is read, of which b is converted already", 1)
	_, events := c.stream(hooked+"?watch=1&timeoutSeconds=20", inCBOR, 2)
	if len(events) != 2 || events[1].get("object", "spec", "host") != "g" {
		t.Errorf("%+v", events)
	}
}
