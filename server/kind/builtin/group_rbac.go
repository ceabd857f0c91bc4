package builtin

import (
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"

	"github.com/plinth-io/plinth/server/kind"
)

func rbacKinds(o Options) []*kind.Kind {
	return group{scheme: legacyscheme.Scheme, name: "rbac.authorization.k8s.io", versions: []string{"v1"}}.kinds(
		&kind.Kind{
			Resource: "clusterrolebindings", Singular: "clusterrolebinding", Kind: "ClusterRoleBinding",
			Create: clusterrolebinding.Strategy, Update: clusterrolebinding.Strategy, Delete: clusterrolebinding.Strategy,
			Hooks: o.clusterRoleBindingHooks(),
		},
		&kind.Kind{
			Resource: "clusterroles", Singular: "clusterrole", Kind: "ClusterRole",
			Create: clusterrole.Strategy, Update: clusterrole.Strategy, Delete: clusterrole.Strategy,
			Hooks: o.clusterRoleHooks(),
			Table: nameAndCreated("rbac.authorization.k8s.io", "clusterroles"),
		},
		&kind.Kind{
			Resource: "rolebindings", Singular: "rolebinding", Kind: "RoleBinding",
			Namespaced: true,
			Create:     rolebinding.Strategy, Update: rolebinding.Strategy, Delete: rolebinding.Strategy,
			Hooks: o.roleBindingHooks(),
		},
		&kind.Kind{
			Resource: "roles", Singular: "role", Kind: "Role",
			Namespaced: true,
			Create:     role.Strategy, Update: role.Strategy, Delete: role.Strategy,
			Hooks: o.roleHooks(),
			Table: nameAndCreated("rbac.authorization.k8s.io", "roles"),
		},
	)
}
