package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// authorization counts decisions about requests, under upstream's names.
type authorization struct {
	attempts map[string]prometheus.Counter
	duration map[string]prometheus.Observer
}

// results are upstream's words for decisions.
var results = []string{"allowed", "denied", "no-opinion", "error"}

func newAuthorization(registry *prometheus.Registry) authorization {
	attempts := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "authorization_attempts_total",
		Help: "Decisions about requests: allowed, denied, no-opinion or error.",
	}, []string{"result"})
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "authorization_duration_seconds",
		Help:    "Seconds that decisions about requests take.",
		Buckets: prometheus.ExponentialBuckets(0.001, 2, 15),
	}, []string{"result"})
	registry.MustRegister(attempts, duration)
	a := authorization{map[string]prometheus.Counter{}, map[string]prometheus.Observer{}}
	for _, result := range results {
		a.attempts[result], a.duration[result] = attempts.WithLabelValues(result), duration.WithLabelValues(result)
	}
	return a
}

// Authorized notes a decision and how long it took.
func (m *Metrics) Authorized(result string, took time.Duration) {
	m.authorization.attempts[result].Inc()
	m.authorization.duration[result].Observe(took.Seconds())
}
