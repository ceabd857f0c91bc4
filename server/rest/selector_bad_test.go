package rest_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
	"github.com/plinth-io/plinth/server/selectors"
)

// manyTerms is a field selector and two forms of a label selector with n terms, ready for a query.
func manyTerms(n int) []string {
	var names, labels, values []string
	for i := range n {
		names = append(names, fmt.Sprintf("metadata.name!=x%d", i))
		labels = append(labels, fmt.Sprintf("a!=x%d", i))
		values = append(values, fmt.Sprintf("x%d", i))
	}
	return []string{
		"fieldSelector=" + url.QueryEscape(strings.Join(names, ",")),
		"labelSelector=" + url.QueryEscape(strings.Join(labels, ",")),
		"labelSelector=" + url.QueryEscape("a notin ("+strings.Join(values, ",")+")"),
	}
}

// TestTooManyTerms sends selectors with as many terms as there may be, and with one more, by each verb.
func TestTooManyTerms(t *testing.T) {
	t.Parallel()
	h := newHarness(t, rest.Options{})
	h.do("POST", configMaps, configMap("a", "1")).want(201)
	h.do("POST", configMaps, configMap("x7", "1")).want(201)
	most := manyTerms(selectors.MostTerms)
	for i, selector := range manyTerms(selectors.MostTerms + 1) {
		before := h.store.Revision()
		for _, call := range []string{"GET ?", "GET ?watch=1&timeoutSeconds=1&", "DELETE ?"} {
			verb, query, _ := strings.Cut(call, " ")
			for _, path := range []string{configMaps, "/api/v1/componentstatuses"} {
				if path != configMaps && call != "GET ?" {
					continue
				}
				a := h.do(verb, path+query+selector, "").want(400)
				name, _, _ := strings.Cut(selector, "=")
				want := name + " has 1001 terms; at most 1000 are possible: select fewer, and make several requests"
				if a.get("kind") != "Status" || a.get("reason") != "BadRequest" || a.get("message") != want {
					t.Errorf("%s %s: %s", call, name, a.body)
				}
			}
		}
		if h.store.Revision() != before {
			t.Errorf("%.20s: something was deleted", selector)
		}
		items := h.do("GET", configMaps+"?"+most[i], "").want(200)
		if got := items.get("items", "0", "metadata", "name") + items.get("items", "1", "metadata", "name"); got != map[bool]string{true: "a", false: "ax7"}[i == 0] {
			t.Errorf("%.20s: %s", selector, got)
		}
		if _, raw := h.events(configMaps+"?watch=1&timeoutSeconds=60&"+most[i], 1); !strings.Contains(raw[0], `"name":"a"`) {
			t.Errorf("%.20s: %s", selector, raw)
		}
		h.do("DELETE", configMaps+"?dryRun=All&"+most[i], "").want(200)
	}
}

// TestContradiction selects nothing, however the terms stand.
func TestContradiction(t *testing.T) {
	t.Parallel()
	h := newHarness(t, rest.Options{}, nothingStays)
	h.do("POST", configMaps, configMap("a", "1")).want(201)
	for _, selector := range []string{"metadata.name=a,metadata.name=b", "metadata.name=b,metadata.name=a", "metadata.name=a,metadata.name!=a", "metadata.namespace=default,metadata.namespace=x"} {
		a := h.do("GET", "/api/v1/configmaps?fieldSelector="+url.QueryEscape(selector), "").want(200)
		if items := a.get("items"); items != "[]" {
			t.Errorf("%s: %s", selector, items)
		}
	}
}
