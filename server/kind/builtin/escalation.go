package builtin

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apirest "k8s.io/apiserver/pkg/registry/rest"
	clusterroles "k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased"
	clusterrolebindings "k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding/policybased"
	roles "k8s.io/kubernetes/pkg/registry/rbac/role/policybased"
	rolebindings "k8s.io/kubernetes/pkg/registry/rbac/rolebinding/policybased"

	"github.com/plinth-io/plinth/server/kind"
)

// Who writes a role must have all of its permissions, or the permission to escalate; who writes a
// binding must have all permissions of its role, or the permission to bind it. Upstream checks
// this in a registry around the registry of the kind.

// author is such a registry around another one.
type author interface {
	apirest.Creater
	apirest.Updater
}

// escalationHooks have upstream's checks for one kind. Without Options.Roles there are none.
func (o Options) escalationHooks(around func(apirest.StandardStorage) author) kind.Hooks {
	if o.Roles == nil {
		return kind.Hooks{}
	}
	return kind.Hooks{Authorize: func(ctx context.Context, obj, old runtime.Object) (err error) {
		if old == nil {
			_, err = around(checked{}).Create(ctx, obj, nil, nil)
		} else {
			_, _, err = around(checked{old: old}).Update(ctx, "", apirest.DefaultUpdatedObjectInfo(obj), nil, nil, false, nil)
		}
		return err
	}}
}

func (o Options) roleHooks() kind.Hooks {
	return o.escalationHooks(func(s apirest.StandardStorage) author { return roles.NewStorage(s, o.Authorizer, o.Roles) })
}

func (o Options) roleBindingHooks() kind.Hooks {
	return o.escalationHooks(func(s apirest.StandardStorage) author { return rolebindings.NewStorage(s, o.Authorizer, o.Roles) })
}

func (o Options) clusterRoleHooks() kind.Hooks {
	return o.escalationHooks(func(s apirest.StandardStorage) author { return clusterroles.NewStorage(s, o.Authorizer, o.Roles) })
}

func (o Options) clusterRoleBindingHooks() kind.Hooks {
	return o.escalationHooks(func(s apirest.StandardStorage) author {
		return clusterrolebindings.NewStorage(s, o.Authorizer, o.Roles)
	})
}

// checked is the registry inside upstream's. It stores nothing: that the call comes so far means
// that the author may write the object. The embedded interface is nil and stands for the methods
// that are not called.
type checked struct {
	apirest.StandardStorage
	old runtime.Object
}

// Create implements rest.Creater.
func (checked) Create(_ context.Context, obj runtime.Object, _ apirest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	return obj, nil
}

// Update implements rest.Updater. Upstream checks an update while the new object is made.
func (c checked) Update(ctx context.Context, _ string, info apirest.UpdatedObjectInfo, _ apirest.ValidateObjectFunc, _ apirest.ValidateObjectUpdateFunc, _ bool, _ *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, err := info.UpdatedObject(ctx, c.old)
	return obj, false, err
}
