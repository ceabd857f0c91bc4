package rest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/rest"
)

// TestLongErrors sends owners of which each claims to be the controller. Upstream's error for each of them has all.
func TestLongErrors(t *testing.T) {
	h := newHarness(t, rest.Options{}, nothingStays)
	h.do("POST", configMaps, `{"metadata":{"name":"long"}}`).want(201)
	var owners []string
	for i := range 900 {
		owners = append(owners, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":"%s","uid":"%d","controller":true}`, strings.Repeat("n", 1000), i))
	}
	body := `{"metadata":{"name":"long","ownerReferences":[` + strings.Join(owners, ",") + `]}}`
	for _, a := range []answer{h.do("POST", configMaps, body), h.do("PUT", configMaps+"/long", body)} {
		if a.code != 422 || len(a.body) > 16<<20 || !strings.Contains(a.body, `"field":"errors"`) {
			t.Errorf("%d, %d bytes: %.300s", a.code, len(a.body), a.body)
		}
	}
}

// TestFewErrors sends bodies with several hundred thousand errors. An answer with all of them would take
// hours.
func TestFewErrors(t *testing.T) {
	h := newHarness(t, rest.Options{}, nothingStays)
	many := func(item string) string { return strings.TrimSuffix(strings.Repeat(item+",", 50_000), ",") }
	pod := func(fields string) string {
		return `{"metadata":{"name":"few"},"spec":{"containers":[{"name":"c","image":"i"` + fields + `}]}}`
	}
	const pods, roles = "/api/v1/namespaces/default/pods", "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
	h.do("POST", pods, pod("")).want(201)
	h.do("POST", configMaps, `{"metadata":{"name":"few"}}`).want(201)
	for _, row := range []struct{ name, method, path, body, last string }{
		{"create", "POST", pods, pod(`,"env":[` + many(`{}`) + `]`), "Too many: 50000: must have at most 1000 items"},
		{"create, another kind", "POST", roles, `{"metadata":{"name":"few"},"rules":[` + many(`{}`) + `]}`, "Too many: 150000: must have at most 1000 items"},
		{"update", "PUT", pods + "/few", pod(`,"env":[` + many(`{}`) + `]`), "Too many: 50001: must have at most 1000 items"},
		{"create, metadata", "POST", configMaps, `{"metadata":{"name":"more","finalizers":[` + many(`""`) + `]}}`, "Too many: 100000: must have at most 1000 items"},
		{"update, metadata", "PUT", configMaps + "/few", `{"metadata":{"name":"few","finalizers":[` + many(`""`) + `]}}`, "Too many: 100000: must have at most 1000 items"},
	} {
		t.Run(row.name, func(t *testing.T) {
			a := h.do(row.method, row.path, row.body)
			var s metav1.Status
			if err := json.Unmarshal([]byte(a.body), &s); err != nil || a.code != 422 {
				t.Fatalf("%d %.300s", a.code, a.body)
			}
			if n := len(s.Details.Causes); n != 1001 || s.Details.Causes[n-1].Message != row.last || s.Details.Causes[n-1].Field != "errors" {
				t.Errorf("%d causes, the last one is %v", n, s.Details.Causes[n-1])
			}
		})
	}
}
