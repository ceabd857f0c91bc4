package authz

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/pkg/registry/rbac/validation"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/plinth-io/plinth/server/lister"
)

// ask returns a decision about a verb on a resource, RESOURCE or RESOURCE/NAME, of the core group.
func ask(t testing.TB, a authorizer.Authorizer, who user.Info, verb, namespace, resource string) (authorizer.Decision, string) {
	t.Helper()
	resource, name, _ := strings.Cut(resource, "/")
	decision, reason, err := a.Authorize(t.Context(), authorizer.AttributesRecord{
		User: who, Verb: verb, Namespace: namespace, Resource: resource, Name: name, APIVersion: "v1", ResourceRequest: true,
	})
	if err != nil {
		t.Error(err)
	}
	return decision, reason
}

// Decisions about roles and bindings of every form.
func TestRBAC(t *testing.T) {
	store := openStore(t)
	a := newAuthorizer(t, store, nil)
	read := rule(all("get", "list"), all(""), all("configmaps"), nil)
	put(t, store, clusterRolePrefix, clusterRole("reader", read))
	put(t, store, clusterRolePrefix, clusterRole("everything", rule(all("*"), all("*"), all("*"), nil)))
	put(t, store, rolePrefix, role("n", "one", rule(all("get"), all(""), all("secrets"), all("mine"))))
	put(t, store, clusterRoleBindingPrefix, clusterBinding("readers", "reader", toGroup("readers"), toUser("rita"), toUser("rita")))
	put(t, store, clusterRoleBindingPrefix, clusterBinding("lost", "gone", toUser("lost")))
	put(t, store, roleBindingPrefix, roleBinding("n", "one", "Role", "one", toUser("owen"), toAccount("", "local"), toAccount("other", "far")))
	put(t, store, roleBindingPrefix, roleBinding("n", "all", "ClusterRole", "everything", toUser("nadia")))
	for _, tt := range []struct {
		who                       user.Info
		verb, namespace, resource string
		reason                    string // "" if refused without one
	}{
		{person("rita"), "get", "n", "configmaps/a", `RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to User "rita"`},
		{person("eve", "readers"), "list", "", "configmaps", `RBAC: allowed by ClusterRoleBinding "readers" of ClusterRole "reader" to Group "readers"`},
		{person("rita"), "delete", "n", "configmaps/a", ""},
		{person("readers"), "get", "n", "configmaps/a", ""},
		{person("eve", "rita"), "get", "n", "configmaps/a", ""},
		{person("owen"), "get", "n", "secrets/mine", `RBAC: allowed by RoleBinding "one/n" of Role "one" to User "owen"`},
		{person("owen"), "get", "n", "secrets/other", ""},
		{person("owen"), "list", "n", "secrets", ""},
		{person("owen"), "get", "m", "secrets/mine", ""},
		{account("n", "local"), "get", "n", "secrets/mine", `RBAC: allowed by RoleBinding "one/n" of Role "one" to ServiceAccount "local/n"`},
		{account("m", "local"), "get", "n", "secrets/mine", ""},
		{account("other", "far"), "get", "n", "secrets/mine", `RBAC: allowed by RoleBinding "one/n" of Role "one" to ServiceAccount "far/other"`},
		{account("n", "far"), "get", "n", "secrets/mine", ""},
		{person("nadia"), "delete", "n", "pods/a", `RBAC: allowed by RoleBinding "all/n" of ClusterRole "everything" to User "nadia"`},
		{person("nadia"), "delete", "", "nodes/a", ""},
		{person("lost"), "get", "n", "pods/a", `rbac: RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found`},
	} {
		decision, reason := ask(t, a, tt.who, tt.verb, tt.namespace, tt.resource)
		allowed := strings.Contains(tt.reason, "allowed")
		if reason != tt.reason || (decision == authorizer.DecisionAllow) != allowed {
			t.Errorf("%s %s %s in %q: %v %q, want %q", tt.who.GetName(), tt.verb, tt.resource, tt.namespace, decision, reason, tt.reason)
		}
	}
}

// A right begins and ends with the change that gives or takes it, whatever an authorizer has remembered: each step
// has one more that is asked for the first time.
func TestRBACFollowsStore(t *testing.T) {
	store := openStore(t)
	get := rule(all("get"), all(""), all("pods"), nil)
	steps := []struct {
		name string
		do   func()
		want bool
	}{
		{"nothing", func() {}, false},
		{"a binding without its role", func() { put(t, store, roleBindingPrefix, roleBinding("n", "b", "Role", "r", toUser("ada"))) }, false},
		{"the role", func() { put(t, store, rolePrefix, role("n", "r", get)) }, true},
		{"a role of other verbs", func() { put(t, store, rolePrefix, role("n", "r", rule(all("list"), all(""), all("pods"), nil))) }, false},
		{"the role again", func() { put(t, store, rolePrefix, role("n", "r", get)) }, true},
		{"another subject", func() { put(t, store, roleBindingPrefix, roleBinding("n", "b", "Role", "r", toUser("bob"))) }, false},
		{"both subjects", func() {
			put(t, store, roleBindingPrefix, roleBinding("n", "b", "Role", "r", toUser("bob"), toUser("ada")))
		}, true},
		{"no role", func() { remove(t, store, rolePrefix, "n", "r") }, false},
		{"the role once more", func() { put(t, store, rolePrefix, role("n", "r", get)) }, true},
		{"no binding", func() { remove(t, store, roleBindingPrefix, "n", "b") }, false},
	}
	var asked []authorizer.Authorizer
	for _, s := range steps {
		s.do()
		asked = append(asked, newAuthorizer(t, store, nil))
		for i, a := range asked {
			if d, _ := ask(t, a, ada, "get", "n", "pods/a"); (d == authorizer.DecisionAllow) != s.want {
				t.Errorf("after %s, the authorizer that was first asked after %s: %v", s.name, steps[i].name, d)
			}
		}
	}
}

// TestBindingsModel compares the rules that users get by the index, and the decisions by what is
// remembered, with those of upstream among all bindings, for random bindings that change.
func TestBindingsModel(t *testing.T) {
	store := openStore(t)
	in := newBound(store)
	indexed, decides := newResolver(store, in), newRBAC(store, in)
	r := rand.New(rand.NewPCG(1, 2))
	names, namespaces := all("a", "b", "c", "d"), all("n", "m")
	for i, name := range names {
		put(t, store, clusterRolePrefix, clusterRole(name, rule(all("get"), all(""), all(fmt.Sprint("c", i)), nil)))
		for _, ns := range namespaces {
			put(t, store, rolePrefix, role(ns, name, rule(all("get"), all(""), all(ns+name), nil)))
		}
	}
	pick := func(from []string) string { return from[r.IntN(len(from))] }
	subjects := func() (list []rbacv1.Subject) {
		for range r.IntN(4) {
			list = append(list, []rbacv1.Subject{
				toUser(pick(names)), toGroup(pick(names)), toAccount(pick(append(namespaces, "")), pick(names)),
				toUser("system:serviceaccount:" + pick(namespaces) + ":" + pick(names)), {Kind: "Robot", Name: pick(names)},
			}[r.IntN(5)])
		}
		return list
	}
	users := []user.Info{account("n", "a"), account("m", "b"), person("a"), person("b", "c", "d"), person("x"), nobody}
	for range 400 {
		ns, name := pick(namespaces), fmt.Sprint("b", r.IntN(6))
		switch {
		case r.IntN(2) == 0:
			put(t, store, clusterRoleBindingPrefix, clusterBinding(name, pick(names), subjects()...))
		case r.IntN(3) > 0:
			put(t, store, roleBindingPrefix, roleBinding(ns, name, pick(all("Role", "ClusterRole")), pick(names), subjects()...))
		case store.Get(roleBindingPrefix+ns+"/"+name) != nil:
			remove(t, store, roleBindingPrefix, ns, name)
		}
		plain, _ := validation.NewTestRuleResolver(lister.All[rbacv1.Role](store, rolePrefix), lister.All[rbacv1.RoleBinding](store, roleBindingPrefix),
			lister.All[rbacv1.ClusterRole](store, clusterRolePrefix), lister.All[rbacv1.ClusterRoleBinding](store, clusterRoleBindingPrefix))
		who := users[r.IntN(len(users))]
		want, wantErr := plain.RulesFor(t.Context(), who, ns)
		got, gotErr := indexed.RulesFor(t.Context(), who, ns)
		if diff := cmp.Diff(want, got); diff != "" || wantErr != nil || gotErr != nil {
			t.Fatalf("rules of %s in %s: %s %v %v", who.GetName(), ns, diff, wantErr, gotErr)
		}
		for _, what := range append(names, "c0", "c1", "c2", "c3", "na", "mb") {
			wantReason := firstReason(t, plain, who, ns, what)
			if decision, reason := ask(t, decides, who, "get", ns, what); (decision == authorizer.DecisionAllow) != (wantReason != "") || decision == authorizer.DecisionAllow && reason != wantReason {
				t.Fatalf("%s gets %s in %s: %v %q, want %q", who.GetName(), what, ns, decision, reason, wantReason)
			}
		}
	}
	if len(in.cluster.byKey) == 0 || len(in.namespaced.byKey) == 0 {
		t.Error("nothing was indexed")
	}
}

// firstReason is why upstream allows to get a resource of the core group, "" if it does not.
func firstReason(t *testing.T, rules validation.AuthorizationRuleResolver, who user.Info, namespace, resource string) (reason string) {
	t.Helper()
	what := authorizer.AttributesRecord{User: who, Verb: "get", Namespace: namespace, Resource: resource, ResourceRequest: true}
	rules.VisitRulesFor(t.Context(), who, namespace, func(source fmt.Stringer, rule *rbacv1.PolicyRule, _ error) bool {
		if rule != nil && rbac.RuleAllows(what, rule) {
			reason = "RBAC: allowed by " + source.String()
		}
		return reason == ""
	})
	return reason
}

// Rules reviews get the rules of all authorizers.
func TestRulesFor(t *testing.T) {
	store := openStore(t)
	bootstrap(t, store)
	a := newAuthorizer(t, store, nil)
	resources, urls, incomplete, err := a.RulesFor(t.Context(), root, "default")
	all := func(r authorizer.ResourceRuleInfo) bool { return slices.Contains(r.GetResources(), "*") }
	if err != nil || incomplete || !slices.ContainsFunc(resources, all) || len(urls) == 0 {
		t.Errorf("rules of system:masters: %v %v %v %v", resources, urls, incomplete, err)
	}
	if resources, urls, _, _ := a.RulesFor(t.Context(), nobody, "default"); len(resources) != 0 || len(urls) != 1 {
		t.Errorf("rules of anonymous: %v %v", resources, urls)
	}
	if _, _, incomplete, err := a.RulesFor(t.Context(), kubelet("a"), "default"); !incomplete || err == nil {
		t.Errorf("the rules of a node are complete: %v", err)
	}
	if _, _, _, err := a.RulesFor(t.Context(), nil, "default"); err == nil {
		t.Error("nobody has rules")
	}
}

// Servers of one process ask at the same time. The race detector tells when they disturb each other; it has
// done so for upstream's own functions.
func TestBootstrapTogether(t *testing.T) {
	t.Parallel()
	var group errgroup.Group
	for range 8 {
		group.Go(func() error {
			verbs := 0
			for _, role := range BootstrapClusterRoles() {
				for _, rule := range role.Rules {
					verbs += len(rule.Verbs)
				}
			}
			for _, rule := range nodeRules() {
				verbs += len(rule.Verbs)
			}
			if verbs == 0 {
				t.Error("no verbs")
			}
			return nil
		})
	}
	_ = group.Wait()
}
