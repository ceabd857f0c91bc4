package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// events counts what watches have sent, as upstream does (apiserver/pkg/endpoints/metrics).
type events struct {
	total *prometheus.CounterVec
	sizes *prometheus.HistogramVec
}

func newEvents() events {
	labels := []string{"group", "version", "resource"}
	return events{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_watch_events_total", Help: "Number of events sent in watch clients",
		}, labels),
		sizes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "apiserver_watch_events_sizes", Help: "Watch event size distribution in bytes",
			Buckets: prometheus.ExponentialBuckets(1024, 2.0, 8),
		}, labels),
	}
}

// Events returns what counts the events of a resource, given the bytes of each object. The resource must
// be one that is served.
func (m *Metrics) Events(of schema.GroupVersionResource) func(bytes int) {
	total, sizes := m.events.total.WithLabelValues(of.Group, of.Version, of.Resource), m.events.sizes.WithLabelValues(of.Group, of.Version, of.Resource)
	return func(bytes int) {
		total.Inc()
		sizes.Observe(float64(bytes))
	}
}

// Features are upstream's metrics of feature gates, with the name of a gate as their label.
var Features = []string{"kubernetes_feature_enabled"}

// Queues are upstream's metrics of work queues, with the name of a queue as their label.
var Queues = []string{
	"workqueue_adds_total", "workqueue_depth", "workqueue_longest_running_processor_seconds", "workqueue_queue_duration_seconds",
	"workqueue_retries_total", "workqueue_unfinished_work_seconds", "workqueue_work_duration_seconds",
}
