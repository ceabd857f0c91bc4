// Package metrics counts requests under kube-apiserver's names and the store under
// plinth_*. Every server has a registry of its own, so that many run in one process.
package metrics

import (
	"cmp"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8smetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Metrics of one server.
type Metrics struct {
	registry *prometheus.Registry
	others   prometheus.Gatherers
	rest     prometheus.Gatherer // nil: there is none
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	running  *prometheus.GaugeVec
	rejected *prometheus.CounterVec
	outdated *prometheus.GaugeVec
	events   events

	authorization authorization

	// TLSErrors counts connections that failed in the TLS handshake.
	TLSErrors prometheus.Counter
	// Panics counts requests whose handler panicked.
	Panics prometheus.Counter

	mu     sync.Mutex // writers of series and of their codes
	series atomic.Pointer[map[Labels]*Series]
}

// Labels of a request, with upstream's meaning (apiserver/pkg/endpoints/metrics).
type Labels struct {
	Verb        string // GET, LIST, WATCH, POST, PUT, PATCH, APPLY, DELETE, DELETECOLLECTION
	DryRun      string // "" or "All"
	Group       string
	Version     string
	Resource    string
	Subresource string
	Scope       string // resource, namespace, cluster, or empty
}

// Series are the counters of one set of labels, resolved once: to look them up by label
// values at every request costs as much as a small read.
type Series struct {
	m        *Metrics
	labels   Labels
	duration prometheus.Observer
	running  prometheus.Gauge
	codes    atomic.Pointer[map[int]prometheus.Counter] // replaced under m.mu
}

// New returns metrics with nothing counted.
func New() *Metrics {
	request := []string{"verb", "dry_run", "group", "version", "resource", "subresource", "scope", "component"}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total",
			Help: "Requests by verb, dry run value, group, version, resource, scope, component and HTTP status code.",
		}, append(request, "code")),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_request_duration_seconds",
			Help: "Seconds from a request's arrival to the end of its response; watches are not in it.",
			Buckets: []float64{0.001, 0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3,
				4, 5, 6, 8, 10, 15, 20, 30, 45, 60},
		}, request),
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_longrunning_requests",
			Help: "Watches that are open.",
		}, []string{"verb", "group", "version", "resource", "subresource", "scope", "component"}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_dropped_requests_total",
			Help: "Requests turned away because too many were running.",
		}, []string{"request_kind"}),
		outdated: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "apiserver_requested_deprecated_apis",
			Help: "1 for each deprecated version of a resource that was requested, with the release that serves it no more.",
		}, []string{"group", "version", "resource", "subresource", "removed_release"}),
		TLSErrors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "apiserver_tls_handshake_errors_total",
			Help: "Connections that failed in the TLS handshake.",
		}),
		Panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "plinth_request_panics_total",
			Help: "Requests whose handler panicked.",
		}),
	}
	for _, kind := range []string{"readOnly", "mutating"} {
		m.rejected.WithLabelValues(kind) // so that rates are known from the start
	}
	m.authorization = newAuthorization(m.registry)
	m.events = newEvents()
	m.registry.MustRegister(m.events.total, m.events.sizes)
	m.series.Store(&map[Labels]*Series{})
	m.registry.MustRegister(m.total, m.duration, m.running, m.rejected, m.outdated, m.TLSErrors, m.Panics,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Register adds collectors, such as the store's.
func (m *Metrics) Register(c ...prometheus.Collector) { m.registry.MustRegister(c...) }

// Gather adds metrics that have a registry of their own. It must be called before Handler.
func (m *Metrics) Gather(g prometheus.Gatherer) { m.others = append(m.others, g) }

// GatherRest adds the metrics of a registry that are not there under the same name. It must be called before Handler.
func (m *Metrics) GatherRest(g prometheus.Gatherer) { m.rest = g }

// Handler serves the metrics in Prometheus' text format.
func (m *Metrics) Handler() http.Handler {
	own := append(prometheus.Gatherers{m.registry}, m.others...)
	if m.rest == nil {
		return handler(own)
	}
	return handler(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return gatherBoth(own, m.rest) }))
}

// gatherBoth returns the metrics of own, and those of rest that own has not.
func gatherBoth(own, rest prometheus.Gatherer) ([]*dto.MetricFamily, error) {
	all, err := own.Gather()
	more, restErr := rest.Gather()
	has := map[string]bool{}
	for _, f := range all {
		has[f.GetName()] = true
	}
	all = append(all, slices.DeleteFunc(more, func(f *dto.MetricFamily) bool { return has[f.GetName()] })...)
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all, errors.Join(err, restErr)
}

// HandlerOf serves other metrics alone, and since when the process runs.
func HandlerOf(c ...prometheus.Collector) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(c...)
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "process_start_time_seconds",
		Help: "[ALPHA] Start time of the process since unix epoch in seconds.",
	}, func() float64 { return float64(started().UnixMilli()) / 1000 }))
	return handler(r)
}

func handler(from prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{ProcessStartTime: started()})
}

// started is when the process began, zero if that is not known.
var started = sync.OnceValue(func() time.Time {
	seconds, err := k8smetrics.GetProcessStart()
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(int64(1000 * seconds))
})

// Deprecated notes that a deprecated version was requested. The labels must not come from
// the client alone.
func (m *Metrics) Deprecated(resource schema.GroupVersionResource, subresource, removedIn string) {
	m.outdated.WithLabelValues(resource.Group, resource.Version, resource.Resource, subresource, removedIn).Set(1)
}

// Series returns the counters of l. The caller bounds the number of different labels: they
// must not have values that a client can make up.
func (m *Metrics) Series(l Labels) *Series {
	if s, ok := (*m.series.Load())[l]; ok {
		return s
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	old := *m.series.Load()
	if s, ok := old[l]; ok {
		return s
	}
	s := &Series{
		m: m, labels: l,
		duration: m.duration.WithLabelValues(l.Verb, l.DryRun, l.Group, l.Version, l.Resource, l.Subresource, l.Scope, component),
		running:  m.running.WithLabelValues(l.Verb, l.Group, l.Version, l.Resource, l.Subresource, l.Scope, component),
	}
	s.codes.Store(&map[int]prometheus.Counter{})
	grown := maps.Clone(old)
	grown[l] = s
	m.series.Store(&grown)
	return s
}

const component = "apiserver"

// Done counts one finished request.
func (s *Series) Done(code int, took time.Duration) {
	s.code(code).Inc()
	s.duration.Observe(took.Seconds())
}

// Began and Ended bracket a watch.
func (s *Series) Began() { s.running.Inc() }

// Ended counts a watch that was answered with code.
func (s *Series) Ended(code int) {
	s.running.Dec()
	s.code(code).Inc()
}

func (s *Series) code(code int) prometheus.Counter {
	if c, ok := (*s.codes.Load())[code]; ok {
		return c
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	l := s.labels
	c := s.m.total.WithLabelValues(l.Verb, l.DryRun, l.Group, l.Version, l.Resource, l.Subresource, l.Scope, component, strconv.Itoa(code))
	grown := maps.Clone(*s.codes.Load())
	grown[code] = c
	s.codes.Store(&grown)
	return c
}

// Rejected counts a request turned away; kind is readOnly or mutating.
func (m *Metrics) Rejected(kind string) { m.rejected.WithLabelValues(kind).Inc() }

// Connections reports how many are open, and how many were closed because there were too many.
func (m *Metrics) Connections(now func() (open int, ended int64)) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plinth_connections_open",
		Help: "Connections of clients that are open.",
	}, func() float64 { open, _ := now(); return float64(open) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "plinth_connections_ended_total",
			Help: "Connections that were closed because too many were open.",
		}, func() float64 { _, ended := now(); return float64(ended) }))
}

// Slow reports what waits for slow clients: for their bodies, or until they read.
func (m *Metrics) Slow(client string, now func() (calls int, bytes, ended int64)) {
	labels := prometheus.Labels{"for": client}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "plinth_slow_requests", Help: "Requests that wait for their client, for a body to come or an answer to be read, and hold no seat.", ConstLabels: labels,
	}, func() float64 { calls, _, _ := now(); return float64(calls) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "plinth_slow_requests_bytes", Help: "Bytes of bodies and answers that wait.", ConstLabels: labels,
		}, func() float64 { _, bytes, _ := now(); return float64(bytes) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "plinth_slow_requests_ended_total", Help: "Requests that were ended because too many waited for their clients.", ConstLabels: labels,
		}, func() float64 { _, _, ended := now(); return float64(ended) }))
}

// Inflight reports how many requests of a kind (readOnly, mutating) run now.
func (m *Metrics) Inflight(kind string, now func() int64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "apiserver_current_inflight_requests",
		Help:        "Requests that run now, by kind; watches are not in it.",
		ConstLabels: prometheus.Labels{"request_kind": kind},
	}, func() float64 { return float64(now()) }))
}

// ValueOf returns the value of a gauge.
func ValueOf(g prometheus.Gauge) float64 {
	var m dto.Metric
	if err := g.Write(&m); err != nil {
		return 0
	}
	return m.GetGauge().GetValue()
}

// TimeOf returns the time that a gauge has in seconds since 1970; zero if it has 0.
func TimeOf(g prometheus.Gauge) time.Time {
	seconds := ValueOf(g)
	if seconds == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(1000 * seconds))
}

// Upstream gives the metrics of upstream's libraries whose name one of wanted knows. They count
// all servers in the process. Upstream's registry is read once for all of wanted.
func Upstream(wanted ...func(name string) bool) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := legacyregistry.DefaultGatherer.Gather()
		return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool {
			return !slices.ContainsFunc(wanted, func(knows func(string) bool) bool { return knows(f.GetName()) })
		}), err
	})
}

// Named knows the names of a list.
func Named(names []string) func(name string) bool {
	return func(name string) bool { return slices.Contains(names, name) }
}
