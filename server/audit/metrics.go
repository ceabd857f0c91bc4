package audit

import "github.com/prometheus/client_golang/prometheus"

func newCounter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: "apiserver_audit_" + name, Help: help})
}

// Collectors are the log's own counters, under upstream's names.
func (l *Log) Collectors() []prometheus.Collector {
	return []prometheus.Collector{l.events, l.rejected}
}

// UpstreamMetrics are counters of upstream's libraries: requests by level, and events that were
// lost. They count all servers in the process.
var UpstreamMetrics = []string{"apiserver_audit_level_total", "apiserver_audit_error_total"}
