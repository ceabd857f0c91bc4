package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedrbac "k8s.io/client-go/kubernetes/typed/rbac/v1"

	"github.com/plinth-io/plinth/server/apitest"
)

// typedAs returns clients with a certificate of the user.
func typedAs(t *testing.T, s *Server, name string, groups ...string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(configAs(t, s, name, groups...))
	must(t, err)
	return client
}

// grant gives a user all verbs on resources, RESOURCE.GROUP, in the namespace default.
func grant(t *testing.T, s *Server, name, to string, resources ...string) {
	t.Helper()
	var rules []rbacv1.PolicyRule
	for _, r := range resources {
		resource, group, _ := strings.Cut(r, ".")
		rules = append(rules, rbacv1.PolicyRule{
			Verbs:     []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"},
			APIGroups: []string{group}, Resources: []string{resource},
		})
	}
	rbac := apitest.Typed(t, s).RbacV1()
	_, err := rbac.Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	_, err = rbac.RoleBindings("default").Create(t.Context(), bindingOf(name, name, to), metav1.CreateOptions{})
	must(t, err)
}

// bindingOf is a binding of a role to a user.
func bindingOf(name, role, to string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: to}},
	}
}

// What has been granted or withdrawn holds for the next request here, and soon on another replica.
func TestRightsFollowBindings(t *testing.T) {
	aloneAndShared(t, Config{}, func(t *testing.T, s, other *Server) {
		admin := apitest.Typed(t, s).RbacV1().RoleBindings("default")
		here, there := typedAs(t, s, "ada").CoreV1().ConfigMaps("default"), typedAs(t, other, "ada").CoreV1().ConfigMaps("default")
		grant(t, s, "maps", "ada", "configmaps")
		for range 20 {
			_, err := here.List(t.Context(), metav1.ListOptions{})
			must(t, err)
			apitest.Eventually(t, "the other replica knows of the binding", func() bool {
				_, err := there.List(t.Context(), metav1.ListOptions{})
				return err == nil
			})
			must(t, admin.Delete(t.Context(), "maps", metav1.DeleteOptions{}))
			if _, err := here.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Fatalf("after the binding was deleted: %v", err)
			}
			apitest.Eventually(t, "the other replica knows that it is gone", func() bool {
				_, err := there.List(t.Context(), metav1.ListOptions{})
				return apierrors.IsForbidden(err)
			})
			_, err = admin.Create(t.Context(), bindingOf("maps", "maps", "ada"), metav1.CreateOptions{})
			must(t, err)
		}
	})
}

// A watch goes on when the right to it is withdrawn, as in kube-apiserver; the next one is refused.
func TestWithdrawalDuringWatch(t *testing.T) {
	s := start(t, Config{})
	grant(t, s, "maps", "ada", "configmaps")
	maps := typedAs(t, s, "ada").CoreV1().ConfigMaps("default")
	running, err := maps.Watch(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64)})
	must(t, err)
	defer running.Stop()
	admin := apitest.Typed(t, s)
	must(t, admin.RbacV1().RoleBindings("default").Delete(t.Context(), "maps", metav1.DeleteOptions{}))
	if _, err := maps.Watch(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a new watch: %v", err)
	}
	_, err = admin.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "later"}}, metav1.CreateOptions{})
	must(t, err)
	for event := range running.ResultChan() {
		if m, ok := event.Object.(*corev1.ConfigMap); ok && event.Type == watch.Added && m.Name == "later" {
			return
		}
	}
	t.Error("the watch ended")
}

// A role that was made stronger on one replica cannot be bound on another one by somebody who lacks its
// rights, however soon; nor can a right that was taken away be given on.
func TestEscalationAcrossReplicas(t *testing.T) {
	aloneAndShared(t, Config{}, func(t *testing.T, one, other *Server) {
		grant(t, one, "author", "ada", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io")
		admin := apitest.Typed(t, one).RbacV1()
		ada := typedAs(t, other, "ada").RbacV1()
		apitest.Eventually(t, "the author's rights are known", func() bool {
			_, err := ada.Roles("default").List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
		for i := range 30 {
			name := fmt.Sprint("r", i)
			role, err := admin.Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			must(t, err)
			role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
			_, err = admin.Roles("default").Update(t.Context(), role, metav1.UpdateOptions{})
			must(t, err)
			if _, err := ada.RoleBindings("default").Create(t.Context(), bindingOf(name, name, "ada"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
				t.Fatalf("bind what was made stronger just now: %v", err)
			}

			grant(t, one, name+"-maps", "ada", "configmaps")
			must(t, admin.RoleBindings("default").Delete(t.Context(), name+"-maps", metav1.DeleteOptions{}))
			weak := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: name + "-own"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}}
			if _, err := ada.Roles("default").Create(t.Context(), weak, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
				t.Fatalf("give on what was withdrawn just now: %v", err)
			}
		}
	})
}

// Roles and bindings change at once, by authors on two replicas who lack a right: whatever comes
// between, nobody gets it by them.
func TestEscalationRace(t *testing.T) {
	aloneAndShared(t, Config{}, func(t *testing.T, one, other *Server) {
		grant(t, one, "author", "ada", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io", "configmaps")
		grant(t, one, "author2", "bob", "roles.rbac.authorization.k8s.io", "rolebindings.rbac.authorization.k8s.io")
		weak := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}
		strong := []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}}}
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		var all errgroup.Group
		attempts := func(s *Server, who string, rules ...[]rbacv1.PolicyRule) {
			rbac := typedAs(t, s, who).RbacV1()
			all.Go(func() error { return changeRole(ctx, rbac, rules) })
			all.Go(func() error { return rebind(ctx, rbac) })
		}
		attempts(one, "ada", weak, strong, nil)
		attempts(other, "bob", nil, weak, strong)
		must(t, all.Wait())
		secrets := typedAs(t, one, "eve").CoreV1().Secrets("default")
		if _, err := secrets.Get(t.Context(), "x", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("eve reads secrets: %v", err)
		}
		role, err := apitest.Typed(t, one).RbacV1().Roles("default").Get(t.Context(), "raced", metav1.GetOptions{})
		if err == nil && len(role.Rules) > 0 && role.Rules[0].Resources[0] == "secrets" {
			t.Error("the role has a right that none of its authors had")
		}
	})
}

// changeRole writes a role with one list of rules after the other until ctx ends.
func changeRole(ctx context.Context, rbac typedrbac.RbacV1Interface, rules [][]rbacv1.PolicyRule) error {
	for i := 0; ctx.Err() == nil; i++ {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "raced"}, Rules: rules[i%len(rules)]}
		_, err := rbac.Roles("default").Update(ctx, role, metav1.UpdateOptions{})
		if err := unexpected(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// rebind binds the role to eve, and unbinds it, until ctx ends.
func rebind(ctx context.Context, rbac typedrbac.RbacV1Interface) error {
	for ctx.Err() == nil {
		_, err := rbac.RoleBindings("default").Create(ctx, bindingOf("raced", "raced", "eve"), metav1.CreateOptions{})
		if err := unexpected(ctx, err); err != nil {
			return err
		}
		if err := unexpected(ctx, rbac.RoleBindings("default").Delete(ctx, "raced", metav1.DeleteOptions{})); err != nil {
			return err
		}
	}
	return nil
}

// unexpected returns errors other than those that a race explains.
func unexpected(ctx context.Context, err error) error {
	if ctx.Err() != nil || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// An update or an apply that would create needs the permission to create, too.
func TestUpdateThatCreates(t *testing.T) {
	s := start(t, Config{})
	rbac := apitest.Typed(t, s).RbacV1()
	rules := []rbacv1.PolicyRule{{Verbs: []string{"update", "patch"}, APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}}}
	_, err := rbac.Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "leases"}, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
	_, err = rbac.RoleBindings("default").Create(t.Context(), bindingOf("leases", "leases", "ada"), metav1.CreateOptions{})
	must(t, err)
	const body = `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a","namespace":"default"}}`
	code, _, answer := apitest.Do(t, clientAs(t, s, "ada"), http.MethodPut, s.URL()+"/apis/coordination.k8s.io/v1/namespaces/default/leases/a", body)
	if code != http.StatusForbidden || !strings.Contains(answer, `cannot create resource \"leases\"`) {
		t.Errorf("%d %s", code, answer)
	}
}
