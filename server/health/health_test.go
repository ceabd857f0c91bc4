package health

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/prometheus/slis"
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
	p := New("readyz", nil, nil, checks...)
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

// A warning is a line as upstream's own warnings are, and fails nothing.
func TestWarn(t *testing.T) {
	p := New("readyz", nil, nil, Ping)
	p.Warn(func() []string { return []string{"alarm disk_low: nearly full"} })
	for path, want := range map[string]string{
		"/readyz":         "ok",
		"/readyz?verbose": "[+]ping ok\nwarn: alarm disk_low: nearly full\nreadyz check passed\n",
	} {
		if a := answer(p, path); a.Code != 200 || a.Body != want {
			t.Errorf("%s: %+v", path, a)
		}
	}
}

func TestFindUnknown(t *testing.T) {
	if h := New("livez", nil, nil, Ping).Find("storage"); h != nil {
		t.Errorf("found %v", h)
	}
}

func TestFailureIsLogged(t *testing.T) {
	var logged strings.Builder
	var wrong error
	storage := Check{Name: "storage", Run: func() error { return wrong }}
	expected := fails("shutdown")
	expected.Expected = true
	p := New("readyz", nil, slog.New(slog.NewTextHandler(&logged, nil)), Ping, storage, expected)
	ask := func(err error, paths ...string) {
		wrong = err
		for _, path := range paths {
			answer(p, path)
		}
	}
	ask(nil, "/readyz")
	ask(errors.New("out of order"), "/readyz", "/readyz?exclude=storage", "/readyz?verbose", "/readyz")
	ask(nil, "/readyz?exclude=storage", "/readyz", "/readyz")
	ask(errors.New("out of order"), "/readyz") // so soon again is not worth a record
	ask(nil, "/readyz")
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	if len(lines) != 2 || !strings.HasSuffix(lines[0], `level=WARN msg="health check fails" probe=readyz check=storage err="out of order"`) ||
		!strings.Contains(lines[1], `level=INFO msg="health check passes again" probe=readyz check=storage after=`) {
		t.Errorf("logged\n%s", &logged)
	}
}

// TestAliases asks for a check by its other name.
func TestAliases(t *testing.T) {
	etcd := fails("etcd")
	etcd.Aliases = []string{"storage"}
	p := New("readyz", nil, nil, Ping, etcd)
	for _, name := range []string{"etcd", "storage"} {
		if a := answer(p, "/readyz?verbose&exclude="+name); a.Code != 200 || a.Body != "[+]ping ok\n[+]etcd excluded: ok\nreadyz check passed\n" {
			t.Errorf("%s excluded: %+v", name, a)
		}
		if a := answer(p.Find(name), "/readyz/"+name); a.Code != 500 {
			t.Errorf("%s alone: %+v", name, a)
		}
	}
	if got := fmt.Sprint(p.Names(), p.Aliases()); got != "[ping etcd] [storage]" {
		t.Error(got)
	}
}

// TestResults compares the metrics of checks with upstream's after the same requests.
func TestResults(t *testing.T) {
	theirs := k8smetrics.NewKubeRegistry()
	slis.ResetHealthMetrics()
	slis.Register(theirs)
	ours, results := prometheus.NewRegistry(), NewResults()
	ours.MustRegister(results.Collectors()...)
	checks := []Check{Ping, fails("etcd")}
	probe := New("readyz", results, nil, checks...)
	for _, path := range []string{"/readyz", "/readyz?exclude=etcd", "/readyz?verbose"} {
		answer(probe, path)
		answer(upstream(checks), path)
	}
	const names = "kubernetes_healthcheck"
	if diff := cmp.Diff(metricsText(t, theirs, names), metricsText(t, ours, names)); diff != "" {
		t.Errorf("(-upstream +plinth)\n%s", diff)
	}
	results.Reset()
	if text := metricsText(t, ours, names); text != "" {
		t.Errorf("after a reset: %s", text)
	}
}

// metricsText is the text of the families whose names begin with prefix.
func metricsText(t *testing.T, from prometheus.Gatherer, prefix string) string {
	t.Helper()
	all, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range all {
		if strings.HasPrefix(f.GetName(), prefix) {
			if _, err := expfmt.MetricFamilyToText(&out, f); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out.String()
}
