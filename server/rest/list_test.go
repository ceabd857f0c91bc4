package rest_test

import (
	"fmt"
	"testing"

	"github.com/plinth-io/plinth/server/rest"
)

// TestListScopes lists in one namespace, in all namespaces, and of cluster-scoped kinds.
func TestListScopes(t *testing.T) {
	h := newHarness(t, rest.Options{}, nothingStays)
	for _, ns := range []string{"n1", "n2"} {
		for _, name := range []string{"a", "b"} {
			h.do("POST", "/api/v1/namespaces/"+ns+"/configmaps", `{"metadata":{"name":"`+name+`"}}`).want(201)
			h.do("POST", "/api/v1/namespaces/"+ns+"/events", `{"metadata":{"name":"`+name+`"},"involvedObject":{"namespace":"`+ns+`"}}`).want(201)
		}
		h.do("POST", "/api/v1/namespaces", `{"metadata":{"name":"`+ns+`"}}`).want(201)
	}
	v := &versioned{harness: h, vars: map[string]string{}, names: map[string]string{fmt.Sprint(h.store.Revision()): "now"}}
	for _, row := range []struct{ name, path, want string }{
		{"a page goes on into the next namespace", "/configmaps?limit=3", "a= b a= @now +1"},
		{"a namespace in the field selector has its own end", "/configmaps?limit=2&fieldSelector=metadata.namespace%3Dn1", "a= b @now"},
		{"one name in all namespaces", "/configmaps?fieldSelector=metadata.name%3Da", "a= a= @now"},
		{"one name in all namespaces has pages", "/configmaps?limit=1&fieldSelector=metadata.name%3Da", "a= @now …"},
		{"one name and namespace", "/configmaps?limit=1&fieldSelector=metadata.name%3Db,metadata.namespace%3Dn1", "b @now"},
		{"another namespace than the path's", "/namespaces/n1/configmaps?fieldSelector=metadata.namespace%3Dn2", "@now"},
		{"an invalid namespace", "/configmaps?fieldSelector=metadata.namespace%3Dn1/a", "@now"},
		{"an absent namespace", "/namespaces/nowhere/configmaps", "@now"},
		{"a cluster-scoped object", "/namespaces?limit=1&fieldSelector=metadata.name%3Dn2", "n2 @now"},
		{"events have no watch cache: version 0 keeps the limit", "/namespaces/n1/events?limit=1&resourceVersion=0", "a= @now +1"},
	} {
		if got := v.outcome(h.do("GET", "/api/v1"+row.path, "")); got != row.want {
			t.Errorf("%s:\n got %s\nwant %s", row.name, got, row.want)
		}
	}
}
