package main

import (
	"strings"
	"testing"
)

// The components are seen in what plinth serves: their metrics under upstream's names, and their checks. Neither was started
// more than once.
func testInside(t *testing.T, c *realCluster) {
	metrics := c.run(t, "kubectl", "get", "--raw", "/metrics")
	for _, want := range []string{
		`scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}`, "node_collector_zone_size{", "endpoint_slice_controller_syncs{",
		`workqueue_depth{name="deployment"}`, "job_controller_job_syncs_total{", "\nplinth_", "\napiserver_request_total{",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in /metrics", want)
		}
	}
	ready := c.run(t, "kubectl", "get", "--raw", "/readyz?verbose")
	for _, want := range []string{"[+]kube-controller-manager ok", "[+]kube-scheduler ok"} {
		if !strings.Contains(ready, want) {
			t.Errorf("no %s in %s", want, ready)
		}
	}
	if log := c.plinth.logged(); strings.Contains(log, "a component ended and starts again") {
		t.Errorf("a component has ended: %s", log)
	}
}
