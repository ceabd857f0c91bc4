package rest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// deletions counts the DELETED events of a resource in a namespace.
func (h *harness) deletions(namespace, resource string) (n int) {
	h.t.Helper()
	events := (&script{harness: h, ns: namespace, start: 1}).watched(resource)
	for _, e := range events {
		if strings.HasPrefix(e, `{"type":"DELETED"`) {
			n++
		}
	}
	return n
}

// TestDeletionRaces lets several clients delete one object, which must be removed once.
func TestDeletionRaces(t *testing.T) {
	const clients = 12
	onEachDialect(t, awayOnOthers, rest.Options{}, func(t *testing.T, h *harness) {
		h.do("POST", configMaps, configMap("first", "1")).want(201)
		t.Run("owners of finalizers", func(t *testing.T) {
			h := *h
			h.t = t
			h.finalizersAtOnce(clients)
		})
		t.Run("the same delete", func(t *testing.T) {
			h := *h
			h.t = t
			path := "/api/v1/namespaces/same/configmaps"
			h.do("POST", path, configMap("a", "1")).want(201)
			codes := atOnce(clients, func(int) answer { return h.do("DELETE", path+"/a", "") })
			if codes[0] != 200 || codes[1] != 404 || codes[clients-1] != 404 {
				t.Errorf("codes %v, want one 200 and 404s", codes)
			}
			if n := h.deletions("same", "configmaps"); n != 1 {
				t.Errorf("deleted %d times", n)
			}
		})
		t.Run("a forced delete", func(t *testing.T) {
			h := *h
			h.t = t
			path := "/api/v1/namespaces/forced/pods"
			h.do("POST", path, onNode).want(201)
			codes := atOnce(clients, func(int) answer { return h.do("DELETE", path+"/a?gracePeriodSeconds=0", "") })
			if codes[0] != 200 || slices.ContainsFunc(codes, func(c int) bool { return c != 200 && c != 404 }) {
				t.Errorf("codes %v, want 200s and 404s", codes)
			}
			if n := h.deletions("forced", "pods"); n != 1 {
				t.Errorf("deleted %d times", n)
			}
		})
	})
}

// finalizersAtOnce deletes an object with n finalizers, each of which is removed by a client of its
// own at the same time.
func (h *harness) finalizersAtOnce(n int) {
	h.t.Helper()
	path := "/api/v1/namespaces/finalizers/configmaps"
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"x.io/%d"`, i))
	}
	h.do("POST", path, `{"metadata":{"name":"a","finalizers":[`+strings.Join(all, ",")+`]}}`).want(201)
	h.do("DELETE", path+"/a", "").want(200)
	codes := atOnce(n, func(i int) answer {
		for {
			a := h.do("GET", path+"/a", "")
			if a.code != 200 {
				return a
			}
			body := strings.Replace(a.body, all[i]+",", "", 1)
			if body == a.body {
				body = strings.NewReplacer(","+all[i], "", `[`+all[i]+`]`, `[]`).Replace(a.body)
			}
			if a = h.do("PUT", path+"/a", body); a.code != 409 {
				return a
			}
		}
	})
	if codes[0] != 200 || codes[n-1] != 200 {
		h.t.Errorf("codes %v, want 200s", codes)
	}
	h.do("GET", path+"/a", "").want(404)
	if got := h.deletions("finalizers", "configmaps"); got != 1 {
		h.t.Errorf("deleted %d times", got)
	}
}
