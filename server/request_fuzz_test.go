package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/plinth-io/plinth/server/authn"
)

// FuzzRequest leads any request through the whole server, as nobody and as the admin: no handler
// panics, none takes longer than a request may, none fails with 500 but where upstream does too, and
// nobody gets what is not public.
func FuzzRequest(f *testing.F) {
	s := New(Config{Linger: time.Millisecond, Controllers: []string{}, RequestTimeout: 30 * time.Second})
	if err := s.Open(context.Background()); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	for _, seed := range requestSeeds(s) {
		f.Add(seed[0], seed[1], seed[2], seed[3], seed[4])
	}
	admin := &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	f.Fuzz(func(t *testing.T, method, target, header, headerValue, body string) {
		for _, who := range []user.Info{nil, admin} {
			r := requestOf(method, target, header, headerValue, body)
			if r == nil {
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // the client goes away
			if who != nil {
				ctx = authn.WithUser(ctx, who)
			}
			w, begun := httptest.NewRecorder(), time.Now()
			s.guard.ServeHTTP(w, r.WithContext(ctx))
			cancel()
			if took := time.Since(begun); took > time.Minute {
				t.Errorf("%s %q took %v", method, target, took)
			}
			if path := r.URL.Path; who == nil && w.Code < 300 && !public.MatchString(path) {
				t.Errorf("%s %q: %s: %d for nobody: %.500s", method, target, header, w.Code, w.Body)
			}
			if w.Code == http.StatusInternalServerError && !upstreams500(w.Body.String()) {
				t.Errorf("%s %q: %s: %.500s", method, target, header, w.Body)
			}
		}
		if n := value(t, s.metrics.Panics); n > 0 {
			t.Fatalf("a handler panicked on %s %q", method, target)
		}
	})
}

// public are the paths of the bootstrap role system:public-info-viewer.
var public = regexp.MustCompile(`^/(livez|readyz|healthz|version/?)$`)

// upstreams500 tells which failures kube-apiserver has too: a path that it cannot take apart, a
// body that is no JSON where it does not say so, and a binding that is not valid.
func upstreams500(body string) bool {
	for _, text := range []string{
		"failed to create RequestInfo", "couldn't get version/kind; json parse error", "Internal Server Error", "no kind \"", "target.name: Required value",
	} {
		if strings.Contains(body, text) {
			return true
		}
	}
	return false
}

// requestOf returns the request that net/http would make of a client's bytes, nil if it would make
// none.
func requestOf(method, target, header, headerValue, body string) *http.Request {
	u, err := url.ParseRequestURI(target)
	if err != nil || !strings.HasPrefix(target, "/") || strings.ContainsAny(method, " \r\n\x00") || method == "" {
		return nil
	}
	r := &http.Request{
		Method: method, URL: u, RequestURI: target, Host: "plinth", RemoteAddr: "192.0.2.1:1234",
		Proto: "HTTP/2.0", ProtoMajor: 2, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader([]byte(body))), ContentLength: int64(len(body)),
	}
	if header != "" {
		r.Header.Set(header, headerValue)
	}
	return r
}

// requestSeeds has each route, each kind, and what is special about some.
func requestSeeds(s *Server) (seeds [][5]string) {
	for _, path := range append(s.routes().otherPaths(), "/", "/api", "/apis", "/openapi/v2", "/openapi/v3") {
		seeds = append(seeds, [5]string{"GET", path, "Accept", "*/*", ""})
	}
	for _, k := range s.kinds.Set().Kinds {
		base := "/apis/" + k.Group + "/"
		if k.Group == "" {
			base = "/api/"
		}
		path := base + k.Versions[0].Name + "/"
		if k.Namespaced {
			path += "namespaces/default/"
		}
		path += k.Resource
		object := `{"metadata":{"name":"a"},"spec":{}}`
		seeds = append(seeds, [5]string{"POST", path + "?dryRun=All&fieldValidation=Strict", "Accept", "application/vnd.kubernetes.protobuf", object},
			[5]string{"GET", path + "?limit=1&labelSelector=a%3Db&fieldSelector=metadata.name%3Da", "Accept", "application/json;as=Table;v=v1;g=meta.k8s.io", ""},
			[5]string{"PATCH", path + "/a?fieldManager=me&force=true", "Content-Type", "application/apply-patch+yaml", object})
	}
	const configmaps = "/api/v1/namespaces/default/configmaps"
	return append(seeds, [][5]string{
		{"GET", configmaps + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", "", ""},
		{"GET", "/api/v1/watch/namespaces/default/configmaps?timeoutSeconds=1", "Connection", "Upgrade", ""},
		{"PATCH", "/api/v1/namespaces/default", "Content-Type", "application/json-patch+json", `[{"op":"add","path":"/metadata/labels","value":{"a":"b"}}]`},
		{"PATCH", "/api/v1/namespaces/default", "Content-Type", "application/strategic-merge-patch+json", `{"metadata":{"$patch":"delete"}}`},
		{"PATCH", "/api/v1/namespaces/default", "Content-Type", "application/merge-patch+json", `{"metadata":{"labels":null}}`},
		{"DELETE", configmaps + "?propagationPolicy=Foreground&dryRun=All", "", "", `{"gracePeriodSeconds":-1,"preconditions":{"uid":"x"}}`},
		{"POST", configmaps, "Content-Type", "application/yaml", "a: &a [*a]\n"},
		{"POST", configmaps, "Content-Type", "application/vnd.kubernetes.protobuf", "k8s\x00\x0a\x00"},
		{"GET", "/api/v1/namespaces/default/pods/a/exec?command=sh&stdin=1", "Upgrade", "websocket", ""},
		{"GET", "/api/v1/namespaces/default/services/a/proxy/../../x", "", "", ""},
		{"GET", "/version", "Authorization", "Bearer x.y.z", ""},
		{"GET", "/version", "Impersonate-User", "ann", ""},
		{"GET", "/api/v1/namespaces", "Impersonate-Group", "system:masters", ""},
		{"GET", "/api/v1/namespaces", "X-Remote-User", "kubernetes-admin", ""},
		{"GET", "/api/v1/namespaces", "X-Remote-Group", "system:masters", ""},
		{"GET", "/healthz/../api/v1/namespaces", "", "", ""},
		{"GET", "//api/v1/namespaces/", "", "", ""},
		{"HEAD", "/livez%2f..%2fmetrics", "", "", ""},
		{"GET", configmaps + "?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0", "", "", ""},
	}...)
}

func value(t *testing.T, c prometheus.Counter) float64 {
	t.Helper()
	var m dto.Metric
	must(t, c.Write(&m))
	return m.GetCounter().GetValue()
}
