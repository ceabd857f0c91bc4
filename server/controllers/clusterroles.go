package controllers

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
)

// aggregateWorkers is upstream's number.
const aggregateWorkers = 5

// runClusterRoles runs upstream's controller that fills cluster roles with an
// aggregationRule with the rules of those that it selects.
func (m *Manager) runClusterRoles(ctx context.Context) error {
	return m.onInformers(ctx, func(ctx context.Context, client kubernetes.Interface, s *informerSet) error {
		s.coalesce(&rbacv1.ClusterRole{}) // it looks at all roles after each change
		c := clusterroleaggregation.NewClusterRoleAggregation(rbac.New(s, "", nil).V1().ClusterRoles(), client.RbacV1())
		s.Start(nil)
		c.Run(ctx, aggregateWorkers)
		return nil
	})
}
