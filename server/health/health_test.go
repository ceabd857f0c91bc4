package health

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
)

func fails(name string) Check {
	return Check{Name: name, Run: func() error { return errors.New("out of order") }}
}

// Every answer is compared with what upstream's own handlers say to the same request.
func TestAsUpstream(t *testing.T) {
	good := Check{Name: "storage", Run: func() error { return nil }}
	tests := []struct {
		path   string
		checks []Check
	}{
		{"/readyz", []Check{Ping, good}},
		{"/readyz?verbose", []Check{Ping, good}},
		{"/readyz?verbose=false", []Check{Ping, good}},
		{"/readyz?verbose&exclude=storage", []Check{Ping, good}},
		{"/readyz?verbose&exclude=b&exclude=a&exclude=b&exclude=ping", []Check{Ping, good}},
		{"/readyz?exclude=nothing", []Check{Ping, good}},
		{"/readyz/ping", []Check{Ping, good}},
		{"/readyz/storage?verbose", []Check{Ping, good}},
		{"/readyz", []Check{Ping, fails("storage")}},
		{"/readyz?verbose", []Check{Ping, fails("storage"), fails("shutdown")}},
		{"/readyz?exclude=storage", []Check{Ping, fails("storage")}},
		{"/readyz?exclude=storage&verbose", []Check{Ping, fails("storage")}},
		{"/readyz?exclude=other", []Check{Ping, fails("storage")}},
		{"/readyz/storage", []Check{Ping, fails("storage")}},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprint(i, tt.path), func(t *testing.T) {
			want := answer(upstream(tt.checks), tt.path)
			got := answer(ours(tt.checks), tt.path)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-upstream +plinth)\n%s", diff)
			}
		})
	}
}

type response struct {
	Code   int
	Header http.Header
	Body   string
}

func answer(h http.Handler, path string) response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return response{w.Code, w.Result().Header, w.Body.String()}
}

func ours(checks []Check) http.Handler {
	p := New("readyz", nil, checks...)
	m := http.NewServeMux()
	m.Handle("/readyz", p)
	for _, name := range p.Names() {
		m.Handle("/readyz/"+name, p.Find(name))
	}
	return m
}

func upstream(checks []Check) http.Handler {
	m := mux.NewPathRecorderMux("test")
	var theirs []healthz.HealthChecker
	for _, c := range checks {
		theirs = append(theirs, healthz.NamedCheck(c.Name, func(*http.Request) error { return c.Run() }))
	}
	healthz.InstallReadyzHandler(m, theirs...)
	return m
}

func TestFindUnknown(t *testing.T) {
	if h := New("livez", nil, Ping).Find("storage"); h != nil {
		t.Errorf("found %v", h)
	}
}

func TestFailureIsLogged(t *testing.T) {
	var logged string
	p := New("readyz", func(format string, args ...any) { logged += fmt.Sprintf(format, args...) }, Ping, fails("storage"))
	answer(p, "/readyz")
	if want := "readyz check failed: [storage: out of order]"; logged != want {
		t.Errorf("logged %q, want %q", logged, want)
	}
}
