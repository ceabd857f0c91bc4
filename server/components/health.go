package components

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apiserver/pkg/server/healthz"
)

// HealthChecks are the checks of upstream's controllers.
type HealthChecks []healthz.HealthChecker

// AddHealthChecker implements app.HealthCheckAdder.
func (h *HealthChecks) AddHealthChecker(more ...healthz.HealthChecker) { *h = append(*h, more...) }

// Check names the controllers that are not well. Why they are not may have names of objects in it.
func (h *HealthChecks) Check() error {
	var failed []string
	for _, c := range *h {
		if err := c.Check(&http.Request{}); err != nil {
			failed = append(failed, c.Name())
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("not well: %s", strings.Join(failed, ", "))
	}
	return nil
}
