package controllers_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
)

func readRule(resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"get"}}
}

// A ClusterRole with an aggregationRule follows the rules of the roles that it selects.
func TestClusterRoleAggregation(t *testing.T) {
	c := openRunning(t, "clusterrole-aggregation")
	roles := c.Client.RbacV1().ClusterRoles()
	create := func(role *rbacv1.ClusterRole) {
		if _, err := roles.Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	fits := map[string]string{"aggregate": "yes"}
	part := func(name string, labels map[string]string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Rules: []rbacv1.PolicyRule{readRule(name)}}
	}
	create(part("pods", fits))
	create(part("secrets", nil))
	create(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all"}, AggregationRule: &rbacv1.AggregationRule{
		ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: fits}},
	}})
	expect := func(what string, want ...rbacv1.PolicyRule) {
		apitest.Eventually(t, what, func() bool {
			role, err := roles.Get(t.Context(), "all", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return cmp.Equal(role.Rules, want)
		})
	}
	expect("pods only", readRule("pods"))
	create(part("nodes", fits))
	expect("nodes too", readRule("nodes"), readRule("pods"))
	if err := roles.Delete(t.Context(), "pods", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("nodes only", readRule("nodes"))
}
