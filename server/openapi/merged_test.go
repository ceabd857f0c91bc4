package openapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/plinth-io/plinth/server/openapi"
)

// The merged index has all documents of both, whatever the method and the headers of the
// request; without further documents the answer is the own one, byte for byte.
func TestMergedIndex(t *testing.T) {
	const body = `{"paths":{"apis/apps/v1":{"serverRelativeURL":"/openapi/v3/apis/apps/v1?hash=1"}}}`
	own := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead || r.Header.Get("Range") != "" {
			return // not the whole index
		}
		_, _ = io.WriteString(w, body)
	})
	var more map[string]string
	index := openapi.MergedIndex(own, func() map[string]string { return more })
	get := func(method, part string) string {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), method, "/openapi/v3", nil)
		if part != "" {
			r.Header.Set("Range", part)
		}
		w := httptest.NewRecorder()
		index.ServeHTTP(w, r)
		if got, want := w.Code, http.StatusOK; got != want && part == "" {
			t.Errorf("%s: %d, want %d", method, got, want)
		}
		return w.Body.String()
	}
	if got := get("GET", ""); got != body {
		t.Errorf("without further documents: %s", got)
	}
	more = map[string]string{"apis/metrics.k8s.io/v1": "/openapi/v3/apis/metrics.k8s.io/v1?hash=2"}
	for _, method := range []string{"GET", "POST"} {
		var got handler3.OpenAPIV3Discovery
		if err := json.Unmarshal([]byte(get(method, "")), &got); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		want := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{
			"apis/apps/v1":           {ServerRelativeURL: "/openapi/v3/apis/apps/v1?hash=1"},
			"apis/metrics.k8s.io/v1": {ServerRelativeURL: "/openapi/v3/apis/metrics.k8s.io/v1?hash=2"},
		}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", method, diff)
		}
	}
	if got := get("GET", "bytes=0-0"); got != "{" {
		t.Errorf("the first byte is %q", got)
	}
}

// An own index that cannot be read is an internal error.
func TestMergedIndexOfGarbage(t *testing.T) {
	own := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "garbage") })
	w := httptest.NewRecorder()
	openapi.MergedIndex(own, func() map[string]string { return map[string]string{"a": "/a"} }).
		ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/openapi/v3", nil))
	if w.Code != http.StatusInternalServerError {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
