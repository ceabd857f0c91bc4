package authz

import (
	"encoding/json"
	"log/slog"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/object"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

// openStore opens an empty database in memory.
func openStore(t testing.TB) *sqlstore.Store {
	t.Helper()
	return storetest.Open(t, storetest.Memory, sqlstore.Options{})
}

// put stores an object over the one that is there.
func put(t testing.TB, store *sqlstore.Store, prefix string, o metav1.Object) {
	t.Helper()
	value, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := storetest.Put(t.Context(), store, object.Key(prefix, o.GetNamespace(), o.GetName()), string(value)); err != nil {
		t.Fatal(err)
	}
}

// remove deletes an object.
func remove(t testing.TB, store *sqlstore.Store, prefix, namespace, name string) {
	t.Helper()
	e := store.Get(object.Key(prefix, namespace, name))
	if e == nil {
		t.Fatalf("%s%s/%s is not there", prefix, namespace, name)
	}
	if _, err := store.Commit(t.Context(), object.Tombstone(e)); err != nil {
		t.Fatal(err)
	}
}

// bootstrap stores upstream's roles and bindings.
func bootstrap(t testing.TB, store *sqlstore.Store) {
	t.Helper()
	for _, r := range slices.Concat(BootstrapClusterRoles(), bootstrappolicy.ControllerRoles()) {
		put(t, store, clusterRolePrefix, &r)
	}
	for _, b := range slices.Concat(bootstrappolicy.ClusterRoleBindings(), bootstrappolicy.ControllerRoleBindings()) {
		put(t, store, clusterRoleBindingPrefix, &b)
	}
}

func newAuthorizer(t testing.TB, store *sqlstore.Store, o *Options) *Authorizer {
	t.Helper()
	a, err := New(store, o, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

var (
	paths = &apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

	nobody = &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}
	root   = &user.DefaultInfo{Name: "root", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	ada    = person("ada")
	robot  = account("n", "robot")
)

func person(name string, groups ...string) user.Info {
	return &user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)}
}

func account(namespace, name string) user.Info {
	return &user.DefaultInfo{Name: serviceaccount.MakeUsername(namespace, name), Groups: append(serviceaccount.MakeGroupNames(namespace), user.AllAuthenticated)}
}

func kubelet(name string) user.Info { return person("system:node:"+name, user.NodesGroup) }

// clusterRole, role, and the bindings below are as short as tests need them.

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{TypeMeta: typed("ClusterRole"), ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{TypeMeta: typed("Role"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Rules: rules}
}

func typed(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}

func clusterBinding(name, role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta: typed("ClusterRoleBinding"), ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

func roleBinding(namespace, name, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		TypeMeta: typed("RoleBinding"), ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
	}
}

func rule(verbs, groups, resources, names []string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: verbs, APIGroups: groups, Resources: resources, ResourceNames: names}
}

func all(words ...string) []string { return words }

func toUser(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func toGroup(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

func toAccount(namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
}
