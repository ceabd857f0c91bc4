package authz

import (
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Users whose names could be taken for each other's are not.
func TestHolders(t *testing.T) {
	seen := map[string]string{}
	for _, h := range []struct {
		namespace, name string
		groups          []string
	}{
		{"", "a", nil}, {"a", "", nil}, {"", "", all("a")}, {"", "a", all("")}, {"", "a", all("", "")},
		{"", "a", all("b", "c")}, {"", "a", all("bc")}, {"", "a", all("c", "b")}, {"", "ab", all("c")},
		{"", "a\x01b", nil}, {"", "a", all("b")}, {"", "a", all("b\x01c")},
	} {
		key := string(cacheKey(nil, &user.DefaultInfo{Name: h.name, Groups: h.groups}, h.namespace))
		if other := seen[key]; other != "" {
			t.Errorf("%q is %s", h, other)
		}
		seen[key] = fmt.Sprintf("%q", h)
	}
}

// What is remembered is bounded, however many users ask, and a change is followed by all.
func TestGrantedIsBounded(t *testing.T) {
	store := openStore(t)
	a := newRBAC(store, newBound(store))
	put(t, store, clusterRolePrefix, clusterRole("reader", rule(all("get"), all(""), all("pods"), nil)))
	put(t, store, clusterRoleBindingPrefix, clusterBinding("readers", "reader", toGroup("readers")))
	everybody := func(want authorizer.Decision) {
		t.Helper()
		for i := range mostCached + 10 {
			who := person(fmt.Sprint("u", i), "readers")
			if decision, reason := ask(t, a, who, "get", "n", "pods/a"); decision != want {
				t.Fatalf("%s: %v %s", who.GetName(), decision, reason)
			}
			if n := len(a.cache.rules); n > mostCached {
				t.Fatalf("%d are remembered", n)
			}
		}
	}
	everybody(authorizer.DecisionAllow)
	remove(t, store, clusterRoleBindingPrefix, "", "readers")
	everybody(authorizer.DecisionNoOpinion)
}
