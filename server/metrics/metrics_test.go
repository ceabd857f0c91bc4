package metrics

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

func scrape(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
}

func TestRequests(t *testing.T) {
	m := New()
	l := Labels{Verb: "GET", Version: "v1", Resource: "pods", Scope: "resource"}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				m.Series(l).Done(200, time.Millisecond)
			}
			m.Series(l).Done(404, 2*time.Second)
		})
	}
	wg.Wait()
	watch := m.Series(Labels{Verb: "WATCH", Version: "v1", Resource: "pods", Scope: "cluster"})
	watch.Began()
	watch.Began()
	watch.Ended(200)
	m.Inflight("readOnly", func() int64 { return 7 })
	labels := `component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="GET",version="v1"`
	wantLines(t, scrape(m),
		`apiserver_request_total{code="200",`+labels+`} 800`,
		`apiserver_request_total{code="404",`+labels+`} 8`,
		`apiserver_request_duration_seconds_count{`+labels+`} 808`,
		`apiserver_longrunning_requests{component="apiserver",group="",resource="pods",scope="cluster",subresource="",verb="WATCH",version="v1"} 1`,
		`apiserver_current_inflight_requests{request_kind="readOnly"} 7`)
}

// Two servers in one process do not count for each other.
func TestRegistriesApart(t *testing.T) {
	a, b := New(), New()
	a.Panics.Inc()
	wantLines(t, scrape(b), "plinth_request_panics_total 0")
}

func BenchmarkDone(b *testing.B) {
	m := New()
	l := Labels{Verb: "GET", Group: "apps", Version: "v1", Resource: "deployments", Scope: "resource"}
	b.ReportAllocs()
	for b.Loop() {
		m.Series(l).Done(200, time.Millisecond)
	}
}
