package authz

import (
	"fmt"
	"testing"

	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// BenchmarkDecision measures a decision with 2,000 roles and bindings besides upstream's, for a user with one
// role in a namespace. An index and each decoded role is made before.
func BenchmarkDecision(b *testing.B) {
	store := openStore(b)
	bootstrap(b, store)
	for i := range 500 {
		name, ns := fmt.Sprint("x", i), fmt.Sprint("n", i%50)
		put(b, store, clusterRolePrefix, clusterRole(name, rule(all("get", "list", "watch"), all("", "apps"), all("pods", "deployments", name), nil)))
		put(b, store, clusterRoleBindingPrefix, clusterBinding(name, name, toUser("c"+name), toGroup("g"+name)))
		put(b, store, rolePrefix, role(ns, name, rule(all("get", "list", "watch", "create", "update"), all(""), all("configmaps"), nil)))
		put(b, store, roleBindingPrefix, roleBinding(ns, name, "Role", name, toUser("u"+name), toAccount(ns, name)))
	}
	a := newAuthorizer(b, store, nil)
	request := authorizer.AttributesRecord{Verb: "get", Namespace: "n7", Resource: "configmaps", Name: "a", APIVersion: "v1", ResourceRequest: true}
	for _, c := range []struct {
		name string
		verb string
		who  string
		want authorizer.Decision
	}{
		{"allowed", "get", "ux7", authorizer.DecisionAllow},
		{"refused", "delete", "ux7", authorizer.DecisionNoOpinion},
	} {
		b.Run(c.name, func(b *testing.B) {
			what := request
			what.User, what.Verb = person(c.who), c.verb
			b.ReportAllocs()
			for b.Loop() {
				if decision, reason, err := a.Authorize(b.Context(), what); decision != c.want || err != nil {
					b.Fatal(decision, reason, err)
				}
			}
		})
	}
}
