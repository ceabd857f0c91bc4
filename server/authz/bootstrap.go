package authz

import (
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// sorting is held while upstream makes roles and rules: it sorts lists of verbs in place that all roles share, and one
// process may have several servers. A sorted list is not written to again, so the result may be read without the lock.
var sorting sync.Mutex

// BootstrapClusterRoles returns upstream's cluster roles of users and components.
func BootstrapClusterRoles() []rbacv1.ClusterRole {
	sorting.Lock()
	defer sorting.Unlock()
	return bootstrappolicy.ClusterRoles()
}

// nodeRules returns what every node may do.
func nodeRules() []rbacv1.PolicyRule {
	sorting.Lock()
	defer sorting.Unlock()
	return bootstrappolicy.NodeRules()
}
