package openapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	openapi_v2 "github.com/google/gnostic-models/openapiv2"
	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"

	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/kind/builtin"
	"github.com/plinth-io/plinth/server/openapi"
)

func serve(t testing.TB) (*httptest.Server, *kind.Registry) {
	kinds := kind.NewRegistry(builtin.Priorities())
	kinds.Replace(nil, builtin.Kinds(builtin.Options{}))
	server := httptest.NewServer(openapi.New(kinds))
	server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.Cleanup(server.Close)
	return server, kinds
}

func get(t testing.TB, server *httptest.Server, path string, header ...string) (*http.Response, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

// TestIndexIsSentAnew requests the index twice within a second. The second answer must have the
// definitions that were added in between.
func TestIndexIsSentAnew(t *testing.T) {
	server, _ := serve(t)
	for range 3 {
		resp, body := get(t, server, "/openapi/v3", "If-Modified-Since", time.Now().UTC().Format(http.TimeFormat))
		if resp.StatusCode != 200 || len(body) == 0 || resp.Header.Get("Last-Modified") == "" {
			t.Errorf("got %d %v", resp.StatusCode, resp.Header)
		}
	}
}

// urlOf finds the URL of a group version in the index.
func urlOf(t testing.TB, server *httptest.Server, path string) string {
	t.Helper()
	_, body := get(t, server, "/openapi/v3")
	var index struct {
		Paths map[string]struct{ ServerRelativeURL string }
	}
	if err := json.Unmarshal(body, &index); err != nil {
		t.Fatal(err)
	}
	return index.Paths[path].ServerRelativeURL
}

func TestCaching(t *testing.T) {
	server, kinds := serve(t)
	url := urlOf(t, server, "apis/batch/v1")
	resp, _ := get(t, server, url)
	if got := resp.Header.Get("Cache-Control"); got != "public, immutable" || resp.Header.Get("Expires") == "" {
		t.Errorf("%s: Cache-Control %q", url, got)
	}
	tag := resp.Header.Get("ETag")
	if !strings.Contains(url, strings.Trim(tag, `"`)) {
		t.Errorf("ETag %s is not the hash of %s", tag, url)
	}
	if resp, body := get(t, server, url, "If-None-Match", tag); resp.StatusCode != http.StatusNotModified || len(body) > 0 {
		t.Errorf("with its tag: %d", resp.StatusCode)
	}
	resp, _ = get(t, server, "/openapi/v3/apis/batch/v1?hash=OLD")
	if resp.StatusCode != http.StatusMovedPermanently || resp.Header.Get("Location") != url {
		t.Errorf("with an old hash: %d %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	if resp, _ := get(t, server, "/openapi/v3/apis/batch/v1"); resp.Header.Get("Cache-Control") != "" {
		t.Errorf("without a hash: %v", resp.Header)
	}
	k := *kinds.Lookup("batch", "v1", "jobs")
	k.Verbs = []string{"get", "list"}
	kinds.Replace([]*kind.Kind{kinds.Lookup("batch", "v1", "jobs")}, []*kind.Kind{&k})
	if changed := urlOf(t, server, "apis/batch/v1"); changed == url {
		t.Error("the hash is the same after a change")
	}
	if _, body := get(t, server, "/openapi/v3/apis/batch/v1"); strings.Contains(string(body), "createBatchV1NamespacedJob") {
		t.Error("the document is the old one after a change")
	}
}

func TestProtobuf(t *testing.T) {
	server, _ := serve(t)
	const v3Type = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
	resp, body := get(t, server, "/openapi/v3/apis/policy/v1", "Accept", v3Type)
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "application/com.github.proto-openapi.spec.v3.v1.0+protobuf" {
		t.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	var v3 openapi_v3.Document
	if err := proto.Unmarshal(body, &v3); err != nil || v3.Info.Title != "Kubernetes" {
		t.Errorf("v3: %v %v", err, v3.Info)
	}
	const v2Type = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
	resp, body = get(t, server, "/openapi/v2", "Accept", v2Type)
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	var v2 openapi_v2.Document
	if err := proto.Unmarshal(body, &v2); err != nil || len(v2.Definitions.AdditionalProperties) < 500 {
		t.Errorf("v2: %v", err)
	}
}

// TestHeaders checks statuses and headers. Odd ones are upstream's.
func TestHeaders(t *testing.T) {
	server, _ := serve(t)
	const json, proto = "application/json", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	for _, c := range []struct {
		path, accept string
		code         int
		media, vary  string
		empty        bool
	}{
		{"/openapi/v3/apis/nonsense/v1", "", 404, "", "", true},
		{"/openapi/v3/", "", 404, "", "", true},
		{"/openapi/v3/api/v1/", "", 404, "", "", true},
		{"/openapi/v3/api/v1", "image/png", 406, "", "Accept", true},
		{"/openapi/v2", "application/yaml", 406, "", "Accept, Accept-Encoding", true},
		{"/openapi/v3", "image/png", 200, "text/plain; charset=utf-8", "", false},
		{"/openapi/v3/api/v1", "", 200, json, "Accept, Accept-Encoding", false},
		{"/openapi/v3/api/v1", proto, 200, proto, "Accept, Accept-Encoding", false},
		{"/openapi/v3/api/v1?hash=old", "", 301, json, "Accept", true},
		{"/openapi/v3/api/v1?hash=old", "image/png", 406, "", "Accept", true},
	} {
		req := httptest.NewRequest(http.MethodGet, c.path, nil)
		req.Header.Set("Accept", c.accept)
		answer := httptest.NewRecorder()
		server.Config.Handler.ServeHTTP(answer, req)
		media, vary := answer.Header().Get("Content-Type"), strings.Join(answer.Header().Values("Vary"), ", ")
		if answer.Code != c.code || media != c.media || vary != c.vary || (answer.Body.Len() == 0) != c.empty {
			t.Errorf("%s for %s: %d %s, Vary: %s, %.100s", c.path, c.accept, answer.Code, media, vary, answer.Body)
		}
	}
}

func TestIfNoneMatch(t *testing.T) {
	d := newDefinitions(t)
	d.put(toy("example.com", map[string]string{"v1": `{"type":"object"}`}))
	server := d.serve()
	for _, path := range []string{"/openapi/v3/apis/example.com/v1", "/openapi/v2"} {
		resp, _ := get(t, server, path)
		tag := resp.Header.Get("ETag")
		for header, code := range map[string]int{tag: 304, "W/" + tag: 304, `"a", ` + tag: 304, "*": 304, `"a"`: 200, "": 200, strings.Trim(tag, `"`): 200} {
			resp, body := get(t, server, path, "If-None-Match", header)
			if resp.StatusCode != code || resp.Header.Get("ETag") != tag || (code == 304) != (len(body) == 0) || resp.Header.Values("Vary")[0] != "Accept" {
				t.Errorf("%s with %s: %d, want %d; %v", path, header, resp.StatusCode, code, resp.Header)
			}
		}
	}
}

// Documents are compressed for whoever accepts gzip, as all other answers are (see package response).
func TestAcceptEncoding(t *testing.T) {
	server, _ := serve(t)
	for accept, want := range map[string]string{
		"gzip": "gzip", "GZIP": "gzip", "deflate, gzip;q=0.5": "gzip",
		"gzip;q=0": "", "x-gzip": "", "identity": "",
	} {
		for _, path := range []string{"/openapi/v2", "/openapi/v3/version"} {
			resp, body := get(t, server, path, "Accept-Encoding", accept)
			if got := resp.Header.Get("Content-Encoding"); resp.StatusCode != 200 || got != want {
				t.Errorf("%s with Accept-Encoding %s: %d, Content-Encoding %q", path, accept, resp.StatusCode, got)
			}
			if isText := body[0] == '{'; isText != (want == "") {
				t.Errorf("%s with Accept-Encoding %s: begins with %q", path, accept, body[:3])
			}
		}
	}
}
