package past

import (
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"
)

// isComponent tells whether a user is a part of Kubernetes. What these change follows from what users
// change, and they do it again when it is undone.
func isComponent(user string) bool {
	switch user {
	case "system:apiserver", "system:kube-controller-manager", "system:kube-scheduler":
		return true
	}
	return strings.HasPrefix(user, "system:node:") || controllerAccounts()[user]
}

// controllerAccounts are the service accounts of kube-controller-manager. Others in their namespace are
// of programs that somebody has installed there, which do what people tell them to.
var controllerAccounts = sync.OnceValue(func() map[string]bool {
	accounts := map[string]bool{}
	add := func(subjects []rbacv1.Subject) {
		for _, s := range subjects {
			if s.Kind == rbacv1.ServiceAccountKind {
				accounts[serviceaccount.MakeUsername(s.Namespace, s.Name)] = true
			}
		}
	}
	for _, b := range bootstrappolicy.ControllerRoleBindings() {
		add(b.Subjects)
	}
	for _, all := range bootstrappolicy.NamespaceRoleBindings() {
		for _, b := range all {
			add(b.Subjects)
		}
	}
	return accounts
})
