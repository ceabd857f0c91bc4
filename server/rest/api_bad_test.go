package rest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// TestBadRequests sends one bad request of each kind and wants upstream's answer.
func TestBadRequests(t *testing.T) {
	h := newHarness(t, rest.Options{MaxBodyBytes: 1 << 20}, nothingStays)
	h.do("POST", configMaps, configMap("there", "1")).want(201)
	long := strings.Repeat("x", 1<<20)
	for _, test := range []struct {
		name, method, path, body string
		headers                  []string
		code                     int
		reason, message          string
	}{
		{"kind and version of another resource", "POST", configMaps, `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"x"}}`, nil, 400, "BadRequest", ""},
		{"too large", "POST", configMaps, long + "x", nil, 413, "RequestEntityTooLarge", "limit is 1048576"},
		{"delete of an absent object", "DELETE", configMaps + "/nobody", "", nil, 404, "NotFound", `configmaps "nobody" not found`},
		{"name too long to store", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"` + strings.Repeat("n", 1100) + `"}}`, nil, 422, "Invalid", "metadata.name"},
		{"name with a zero byte", "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"a\u0000b"}}`, nil, 422, "Invalid", "metadata.name"},
		{"bad label selector", "GET", configMaps + "?labelSelector=a%20b", "", nil, 400, "BadRequest", "unable to parse requirement"},
		{"bad field selector", "GET", configMaps + "?fieldSelector=spec.color%3Dred", "", nil, 400, "BadRequest", `"spec.color" is not a known field selector: only "metadata.name", "metadata.namespace"`},
		{"unknown value of dryRun", "POST", configMaps + "?dryRun=Some", configMap("x", "1"), nil, 422, "Invalid", "dryRun"},
	} {
		t.Run(test.name, func(t *testing.T) {
			h.t = t
			a := h.do(test.method, test.path, test.body, test.headers...).want(test.code)
			if a.get("kind") != "Status" || a.get("status") != "Failure" || a.get("code") != fmt.Sprint(test.code) {
				t.Errorf("not a Status: %s", a.body)
			}
			if a.get("reason") != test.reason {
				t.Errorf("reason %q, want %q", a.get("reason"), test.reason)
			}
			if !strings.Contains(a.get("message"), test.message) {
				t.Errorf("message %q, want it to contain %q", a.get("message"), test.message)
			}
		})
	}
}
