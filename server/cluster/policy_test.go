package cluster

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/authz"
)

// policied is an API with upstream's roles and bindings.
func policied(t *testing.T) (*apitest.API, *Cluster) {
	t.Helper()
	api := apitest.Open(t)
	return api, policiedOn(t, api)
}

func policiedOn(t *testing.T, api *apitest.API) *Cluster {
	t.Helper()
	c, err := New(Config{Client: api.Config, Store: api.Store})
	if err != nil {
		t.Fatal(err)
	}
	if c.PolicyReady() {
		t.Error("it is ready before it begins")
	}
	ensurePolicy(t, c)
	return c
}

func ensurePolicy(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.EnsurePolicy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !c.PolicyReady() {
		t.Error("it is not ready")
	}
}

// gathered sends the first requests that create something only when all of them are there.
type gathered struct {
	http.RoundTripper
	missing atomic.Int64
	there   chan struct{}
	ended   <-chan struct{}
}

func (g *gathered) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost {
		if g.missing.Add(-1) == 0 {
			close(g.there)
		}
		select {
		case <-g.there:
		case <-g.ended:
			return nil, fmt.Errorf("%d more do not come", g.missing.Load())
		}
	}
	return g.RoundTripper.RoundTrip(req)
}

// All roles and bindings are made, with plinth's own role and binding, at the same time, so that they share commits, and a
// second time nothing is written.
func TestEnsurePolicy(t *testing.T) {
	api := apitest.Open(t)
	wantRoles := len(authz.BootstrapClusterRoles()) + len(bootstrappolicy.ControllerRoles()) + 1
	wantBindings := len(bootstrappolicy.ClusterRoleBindings()) + len(bootstrappolicy.ControllerRoleBindings()) + 1
	patience, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g := &gathered{RoundTripper: api.Config.Transport, there: make(chan struct{}), ended: patience.Done()}
	g.missing.Store(int64(wantRoles + wantBindings))
	api.Config.Transport = g
	c := policiedOn(t, api)
	roles, err := api.Client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(roles.Items) != wantRoles {
		t.Errorf("%d cluster roles, want %d, %v", len(roles.Items), wantRoles, err)
	}
	bindings, err := api.Client.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(bindings.Items) != wantBindings {
		t.Errorf("%d cluster role bindings, want %d, %v", len(bindings.Items), wantBindings, err)
	}
	for namespace, want := range bootstrappolicy.NamespaceRoles() {
		got, err := api.Client.RbacV1().Roles(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(got.Items) != len(want) {
			t.Errorf("%d roles in %s, want %d, %v", len(got.Items), namespace, len(want), err)
		}
	}
	before := api.Store.Revision()
	ensurePolicy(t, c)
	if after := api.Store.Revision(); after != before {
		t.Errorf("the second time %d changes were written", after-before)
	}
}

// What users have added stays, what is missing comes back, and what is protected is left alone.
func TestEnsurePolicyReconciles(t *testing.T) {
	api, c := policied(t)
	rbac, ctx := api.Client.RbacV1(), t.Context()
	own := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"things"}}
	change := func(name string, f func(*rbacv1.ClusterRole)) {
		t.Helper()
		role, err := rbac.ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f(role)
		if _, err := rbac.ClusterRoles().Update(ctx, role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	change("system:discovery", func(r *rbacv1.ClusterRole) { r.Rules = []rbacv1.PolicyRule{own} })
	change("system:basic-user", func(r *rbacv1.ClusterRole) {
		r.Rules, r.Annotations = nil, map[string]string{rbacv1.AutoUpdateAnnotationKey: "false"}
	})
	if err := rbac.ClusterRoles().Delete(ctx, "system:node-proxier", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	binding, err := rbac.ClusterRoleBindings().Get(ctx, "system:public-info-viewer", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding.Subjects = []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "ada"}}
	if _, err := rbac.ClusterRoleBindings().Update(ctx, binding, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := rbac.ClusterRoleBindings().Delete(ctx, "system:kube-dns", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	other := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "system:kube-dns"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
	}
	if _, err := rbac.ClusterRoleBindings().Create(ctx, other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ensurePolicy(t, c)
	rules := func(name string) int {
		role, err := rbac.ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			t.Error(err)
			return -1
		}
		return len(role.Rules)
	}
	if n := rules("system:discovery"); n < 2 {
		t.Errorf("system:discovery has %d rules, want its own and the user's", n)
	}
	if n := rules("system:basic-user"); n != 0 {
		t.Errorf("the protected role has %d rules", n)
	}
	if n := rules("system:node-proxier"); n < 1 {
		t.Errorf("the deleted role has %d rules", n)
	}
	binding, err = rbac.ClusterRoleBindings().Get(ctx, "system:public-info-viewer", metav1.GetOptions{})
	if err != nil || len(binding.Subjects) != 3 {
		t.Errorf("subjects %v, %v", binding.Subjects, err)
	}
	binding, err = rbac.ClusterRoleBindings().Get(ctx, "system:kube-dns", metav1.GetOptions{})
	if err != nil || binding.RoleRef.Name != "system:kube-dns" {
		t.Errorf("role %v, %v", binding.RoleRef, err)
	}
}

// A role of before Kubernetes 1.9 lives on in the role that is aggregated into it.
func TestEnsurePolicyMigrates(t *testing.T) {
	api := apitest.Open(t)
	own := rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{"example.com"}, Resources: []string{"things"}}
	_, err := api.Client.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "view"}, Rules: []rbacv1.PolicyRule{own},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Config{Client: api.Config, Store: api.Store})
	if err != nil {
		t.Fatal(err)
	}
	ensurePolicy(t, c)
	role, err := api.Client.RbacV1().ClusterRoles().Get(t.Context(), "system:aggregate-to-view", metav1.GetOptions{})
	if err != nil || len(role.Rules) < 2 || role.Rules[0].APIGroups[0] != "example.com" {
		t.Errorf("%v, %v", role, err)
	}
	view, err := api.Client.RbacV1().ClusterRoles().Get(t.Context(), "view", metav1.GetOptions{})
	if err != nil || view.AggregationRule == nil {
		t.Errorf("%v, %v", view, err)
	}
}

// Several servers begin at once.
func TestEnsurePolicyAtOnce(t *testing.T) {
	api := apitest.Open(t)
	var all sync.WaitGroup
	for range 3 {
		c, err := New(Config{Client: api.Config, Store: api.Store})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := c.EnsurePolicy(t.Context()); err != nil && !apierrors.IsConflict(err) {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
