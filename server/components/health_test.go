package components_test

import (
	"errors"
	"net/http"
	"testing"

	"k8s.io/apiserver/pkg/server/healthz"

	"github.com/plinth-io/plinth/server/components"
)

// The names of checks that fail are public, their errors are not.
func TestHealthChecks(t *testing.T) {
	var h components.HealthChecks
	bad := errors.New("object a/secret")
	h.AddHealthChecker(healthz.PingHealthz, healthz.NamedCheck("one", func(*http.Request) error { return bad }), healthz.NamedCheck("two", func(*http.Request) error { return bad }))
	if err := h.Check(); err == nil || err.Error() != "not well: one, two" {
		t.Error(err)
	}
	bad = nil
	if err := h.Check(); err != nil {
		t.Error(err)
	}
}
