package audit

// UpstreamMetrics are counters of upstream's libraries: events, requests by level, events that were lost, and requests
// that were refused because their event could not be stored. They count all servers in the process.
var UpstreamMetrics = []string{
	"apiserver_audit_event_total", "apiserver_audit_level_total", "apiserver_audit_error_total",
	"apiserver_audit_requests_rejected_total",
}
