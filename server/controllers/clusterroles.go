package controllers

import (
	"context"
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/kubernetes"
	typedrbac "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
)

// aggregateWorkers is upstream's number.
const aggregateWorkers = 5

// runClusterRoles runs upstream's controller that fills in the rules of cluster roles that have an
// aggregationRule.
func (m *Manager) runClusterRoles(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		s.coalesce(&rbacv1.ClusterRole{}) // after each change, the handler reads all roles, and again for each role with a rule
		share[rbacv1.ClusterRole](s)
		c := clusterroleaggregation.NewClusterRoleAggregation(rbac.New(s, "", nil).V1().ClusterRoles(), ordered{client.RbacV1(), s.store})
		s.Start(nil)
		c.Run(ctx, aggregateWorkers)
		return nil
	})
}

// ordered is a client that does not write a cluster role if only the order of its rules differs. If roles
// select each other, the order in one depends on the order in the others, and the controller could rewrite
// them for ever.
type ordered struct {
	typedrbac.ClusterRolesGetter
	store *sqlstore.Store
}

// ClusterRoles implements typedrbac.ClusterRolesGetter.
func (o ordered) ClusterRoles() typedrbac.ClusterRoleInterface {
	return orderedRoles{o.ClusterRolesGetter.ClusterRoles(), o.store}
}

type orderedRoles struct {
	typedrbac.ClusterRoleInterface
	store *sqlstore.Store
}

func (o orderedRoles) Apply(ctx context.Context, role *rbacapply.ClusterRoleApplyConfiguration, options metav1.ApplyOptions) (*rbacv1.ClusterRole, error) {
	now := lister.Get[rbacv1.ClusterRole](o.store, object.Prefix(rbacv1.GroupName, "clusterroles"), *role.Name)
	if now != nil && sameRules(now.Rules, role.Rules) {
		return now, nil
	}
	return o.ClusterRoleInterface.Apply(ctx, role, options)
}

// sameRules reports whether a role has exactly these rules, in any order.
func sameRules(has []rbacv1.PolicyRule, want []rbacapply.PolicyRuleApplyConfiguration) bool {
	return slices.Equal(sortedText(has), sortedText(want))
}

// sortedText returns the JSON of each rule, sorted. Each is decoded into a PolicyRule first, because an apply
// configuration has its fields in another order.
func sortedText[T any](rules []T) (all []string) {
	for _, r := range rules {
		text, _ := json.Marshal(r) // every rule can be encoded
		var rule rbacv1.PolicyRule
		_ = json.Unmarshal(text, &rule)
		text, _ = json.Marshal(rule)
		all = append(all, string(text))
	}
	slices.Sort(all)
	return all
}
