package audit

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"
)

func newCounter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "apiserver_audit_" + name, Help: help})
}

// Collectors are the log's own counters, under upstream's names.
func (l *Log) Collectors() []prometheus.Collector {
	return []prometheus.Collector{l.events, l.rejected}
}

// Metrics gives what upstream's libraries count themselves: requests by level, and events
// that were lost. They are of all servers in the process.
func Metrics() prometheus.Gatherer {
	names := []string{"apiserver_audit_level_total", "apiserver_audit_error_total"}
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		all, err := legacyregistry.DefaultGatherer.Gather()
		return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return !slices.Contains(names, f.GetName()) }), err
	})
}
