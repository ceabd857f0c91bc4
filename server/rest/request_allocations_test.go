package rest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// TestAllocations bounds how many allocations a request makes, with what the test itself makes for it and what the
// store does in its goroutines. A bound is a quarter above what was measured when it was set: who exceeds one finds
// out why, or says why it has to be.
func TestAllocations(t *testing.T) {
	const config, apply, merge = 0, "application/apply-patch+yaml", "application/merge-patch+json"
	body := func(n int) string { return fmt.Sprintf(benchmarked[config].body, n) }
	path := benchmarked[config].path
	collection := strings.TrimSuffix(path, "/x")
	for _, row := range []struct {
		name string
		most float64
		do   func(h *harness, n int)
	}{
		{"get", 45, func(h *harness, n int) { h.serve(http.MethodGet, path, "", "") }},
		{"list", 115, func(h *harness, n int) { h.serve(http.MethodGet, collection+"?limit=10", "", "") }},
		{"list of a thousand", 110, func(h *harness, n int) {
			if n == 1 {
				h.fill(1000) // in the run that does not count
			}
			h.serve(http.MethodGet, collection, "", "")
		}},
		{"create", 390, func(h *harness, n int) {
			one, _ := another(config, n)
			h.serve(http.MethodPost, collection, one, "application/json")
		}},
		{"update", 610, func(h *harness, n int) { h.serve(http.MethodPut, path, body(n), "application/json") }},
		{"merge patch", 820, func(h *harness, n int) {
			h.serve(http.MethodPatch, path, fmt.Sprintf(`{"data":{"key":"%d"}}`, n), merge)
		}},
		{"apply that creates", 450, func(h *harness, n int) {
			one, name := another(config, n)
			h.serve(http.MethodPatch, collection+"/"+name+"?fieldManager=me", one, apply)
		}},
		{"apply that changes a field", 970, func(h *harness, n int) {
			h.serve(http.MethodPatch, path+"?fieldManager=me&force=true", body(n), apply)
		}},
		{"apply of what is there", 90, func(h *harness, n int) {
			h.serve(http.MethodPatch, path+"?fieldManager=me&force=true", body(1), apply)
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHarnessWith(t, "sqlite://:memory:", inMemory, rest.Options{})
			h.serve(http.MethodPost, collection, body(0), "application/json")
			n := 0
			got := testing.AllocsPerRun(200, func() {
				n++
				row.do(h, n)
			})
			t.Logf("%v allocations", got)
			if got > row.most {
				t.Errorf("%v allocations, at most %v are expected", got, row.most)
			}
		})
	}
}
