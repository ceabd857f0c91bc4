package health

import "github.com/prometheus/client_golang/prometheus"

// Results counts what checks said, under upstream's names (component-base: metrics/prometheus/slis).
type Results struct {
	last  *prometheus.GaugeVec
	total *prometheus.CounterVec
}

// NewResults returns Results with nothing counted.
func NewResults() *Results {
	return &Results{
		last: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "kubernetes_healthcheck",
			Help: "[STABLE] This metric records the result of a single healthcheck.",
		}, []string{"name", "type"}),
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "kubernetes_healthchecks_total",
			Help: "[STABLE] This metric records the results of all healthcheck.",
		}, []string{"name", "type", "status"}),
	}
}

// Collectors are for a registry.
func (r *Results) Collectors() []prometheus.Collector { return []prometheus.Collector{r.last, r.total} }

// Reset forgets everything.
func (r *Results) Reset() {
	r.last.Reset()
	r.total.Reset()
}

func (r *Results) observe(check, probe string, err error) {
	passed, status := 1.0, "success"
	if err != nil {
		passed, status = 0, "error"
	}
	r.last.WithLabelValues(check, probe).Set(passed)
	r.total.WithLabelValues(check, probe, status).Inc()
}
