package fairness

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

const prefix = "apiserver_flowcontrol_"

var seconds = []float64{0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30} // upstream's buckets

// metrics are those of upstream's that count each request, under the same names. Upstream counts
// only requests in its queues, and looks its counters up by name for each.
type metrics struct {
	dispatched            *prometheus.CounterVec
	running, seats        *prometheus.GaugeVec
	ran, waited, estimate *prometheus.HistogramVec

	each sync.Map // names to *counts
}

// counts are the metrics of one priority level and FlowSchema, looked up once.
type counts struct {
	dispatched                              prometheus.Counter
	running, seats                          prometheus.Gauge
	ran, watched, waited, refused, estimate prometheus.Observer
}

func newMetrics() *metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: prefix + name, Help: help, Buckets: buckets}, append([]string{"priority_level", "flow_schema"}, labels...))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: prefix + name, Help: help}, []string{"priority_level", "flow_schema"})
	}
	return &metrics{
		dispatched: prometheus.NewCounterVec(prometheus.CounterOpts{Name: prefix + "dispatched_requests_total", Help: "Requests that were let in."}, []string{"priority_level", "flow_schema"}),
		running:    gauge("current_executing_requests", "Requests that run now; watches that begin now."),
		seats:      gauge("current_executing_seats", "Seats of the requests that run now."),
		ran:        histogram("request_execution_seconds", "Seconds that a request ran; for a watch, until it began.", seconds, "type"),
		waited:     histogram("request_wait_duration_seconds", "Seconds that a request waited for a seat.", seconds, "execute"),
		estimate:   histogram("work_estimated_seats", "Seats that a request was estimated to take.", []float64{1, 2, 4, 8, 16, 32, 64, 100}),
	}
}

func (m *metrics) of(n names) *counts {
	if known, ok := m.each.Load(n); ok {
		return known.(*counts)
	}
	c := &counts{
		dispatched: m.dispatched.WithLabelValues(n.level, n.schema),
		ran:        m.ran.WithLabelValues(n.level, n.schema, "regular"),
		watched:    m.ran.WithLabelValues(n.level, n.schema, "watch"),
		waited:     m.waited.WithLabelValues(n.level, n.schema, "true"),
		refused:    m.waited.WithLabelValues(n.level, n.schema, "false"),
		estimate:   m.estimate.WithLabelValues(n.level, n.schema),
		running:    m.running.WithLabelValues(n.level, n.schema),
		seats:      m.seats.WithLabelValues(n.level, n.schema),
	}
	known, _ := m.each.LoadOrStore(n, c)
	return known.(*counts)
}

// let counts a request that has its seats after a time. An exempt request does not wait.
func (c *counts) let(exempt bool, seats int, after time.Duration) {
	c.dispatched.Inc()
	if !exempt {
		c.waited.Observe(after.Seconds())
	}
	c.estimate.Observe(float64(seats))
	c.running.Inc()
	c.seats.Add(float64(seats))
}

// done counts the end of a request that was let in, or that a watch has begun.
func (c *counts) done(watch bool, seats int, took time.Duration) {
	c.running.Dec()
	c.seats.Sub(float64(seats))
	if watch {
		c.watched.Observe(took.Seconds())
	} else {
		c.ran.Observe(took.Seconds())
	}
}

// Collectors are the metrics that are counted here.
func (c *Controller) Collectors() []prometheus.Collector {
	m := c.metrics
	return []prometheus.Collector{m.dispatched, m.running, m.seats, m.ran, m.waited, m.estimate}
}

// replaced are upstream's metrics that are not shown: most do not know of requests that pass by
// the queues.
var replaced = []string{
	"dispatched_requests_total", "request_execution_seconds", "request_wait_duration_seconds", "work_estimated_seats",
	"current_executing_requests", "current_executing_seats", "request_queue_length_after_enqueue", "read_vs_write_current_requests",
}

// UpstreamMetric knows the names of upstream's other metrics of priority and fairness. They count
// all servers in the process.
func UpstreamMetric(name string) bool {
	name, ours := strings.CutPrefix(name, prefix)
	return ours && !slices.Contains(replaced, name)
}
