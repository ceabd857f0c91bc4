package authz

import (
	"context"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/plinth-io/plinth/server/lister"
	"github.com/plinth-io/plinth/sqlstore"
)

// stored reads roles by their names, for a Resolver. It implements upstream's
// validation.RoleGetter and validation.ClusterRoleGetter with the errors of upstream's registries,
// which differ from those of listers.
type stored struct{ store *sqlstore.Store }

func (s stored) GetRole(ctx context.Context, namespace, name string) (*rbacv1.Role, error) {
	if _, err := registry.NamespaceKeyFunc(apirequest.WithNamespace(ctx, namespace), "", name); err != nil {
		return nil, err
	}
	return read[rbacv1.Role](ctx, s.store, rolePrefix+namespace+"/"+name, "roles", name)
}

func (s stored) GetClusterRole(ctx context.Context, name string) (*rbacv1.ClusterRole, error) {
	if _, err := registry.NoNamespaceKeyFunc(ctx, "", name); err != nil {
		return nil, err
	}
	return read[rbacv1.ClusterRole](ctx, s.store, clusterRolePrefix+name, "clusterroles", name)
}

// read returns the object of a key. If a role is missing, the error says that the binding in the request was not found,
// as upstream's registries do, which take the resource from the context.
func read[T any](ctx context.Context, store *sqlstore.Store, key, resource, name string) (*T, error) {
	if e := store.Get(key); e != nil {
		return lister.Decode[T](e)
	}
	missing := rbacv1.Resource(resource)
	if info, ok := apirequest.RequestInfoFrom(ctx); ok {
		missing = schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	}
	return nil, apierrors.NewNotFound(missing, name)
}
