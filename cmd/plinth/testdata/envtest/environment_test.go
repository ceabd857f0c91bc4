package suite

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// eventually waits until done returns nil.
func eventually(t *testing.T, done func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = done(); err == nil {
			return
		}
	}
	t.Fatal(err)
}

// TestWidget is the way of an object through webhooks and reconciler.
func TestWidget(t *testing.T) {
	eventually(t, func() error { return client.IgnoreAlreadyExists(admin.Create(t.Context(), newWidget("one", 1))) }) // webhooks are served soon
	w := newWidget("one", 0)
	eventually(t, func() error {
		if err := admin.Get(t.Context(), client.ObjectKeyFromObject(w), w); err != nil {
			return err
		}
		if ready, _, _ := unstructured.NestedBool(w.Object, "status", "ready"); !ready {
			return apierrors.NewTimeoutError("the widget is not ready", 0)
		}
		return nil
	})
	if color, _, _ := unstructured.NestedString(w.Object, "spec", "color"); color != "red" {
		t.Errorf("the color is %q; the webhook has not set it", color)
	}
	if err := admin.Create(t.Context(), newWidget("unlucky", 13)); err == nil || !strings.Contains(err.Error(), "13 is unlucky") {
		t.Errorf("the webhook denies 13; the answer is %v", err)
	}
	if err := admin.Create(t.Context(), newWidget("none", -1)); !apierrors.IsInvalid(err) {
		t.Errorf("the schema has no size -1; the answer is %v", err)
	}
}

// TestAddUser adds a user, who may do what a role says and nothing else.
func TestAddUser(t *testing.T) {
	jane, err := env.AddUser(envtest.User{Name: "jane", Groups: []string{"readers"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	as, err := client.New(jane.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := as.List(t.Context(), new(corev1.ConfigMapList), client.InNamespace("default")); !apierrors.IsForbidden(err) {
		t.Fatalf("without a role: %v", err)
	}
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "read"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"list"}}}},
		&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "read"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "read"}, Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "readers"}}},
	} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, func() error { return as.List(t.Context(), new(corev1.ConfigMapList), client.InNamespace("default")) })
	if err := as.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}); !apierrors.IsForbidden(err) {
		t.Errorf("a reader's create: %v", err)
	}
}

// TestKubectl runs the kubectl that is beside the servers.
func TestKubectl(t *testing.T) {
	user, err := env.AddUser(envtest.User{Name: "root", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := user.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	stdout, stderr, err := kubectl.Run("get", "namespaces", "-o", "name")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, r := range []interface{ Read([]byte) (int, error) }{stdout, stderr} {
		b := make([]byte, 1<<16)
		n, _ := r.Read(b)
		text.Write(b[:n])
	}
	if !strings.Contains(text.String(), "namespace/default\n") {
		t.Errorf("kubectl printed %s", text.String())
	}
}

// TestNoControllers has what tests on envtest rely on: no controller deletes what they look at.
func TestNoControllers(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ending"}}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ending", Name: "settings"}}
	for _, o := range []client.Object{ns, settings} {
		if err := admin.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := admin.Delete(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(ns), ns); err != nil || ns.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("the namespace is %s, %v", ns.Status.Phase, err)
	}
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(settings), settings); err != nil {
		t.Error(err)
	}
	accounts := new(corev1.ServiceAccountList)
	if err := admin.List(t.Context(), accounts, client.InNamespace("ending")); err != nil || len(accounts.Items) != 0 {
		t.Errorf("%d service accounts, %v", len(accounts.Items), err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: new(bool)},
	}}}}
	*pod.Spec.Containers[0].SecurityContext.Privileged = true // envtest allows it
	if err := admin.Create(t.Context(), pod); err != nil {
		t.Error(err)
	}
}

// TestAnother has a second environment beside the first, with flags of its own, and starts it twice:
// it is empty again.
func TestAnother(t *testing.T) {
	other := &envtest.Environment{}
	args := other.ControlPlane.GetAPIServer().Configure()
	args.Append("enable-admission-plugins", "NamespaceAutoProvision").Append("disable-admission-plugins", "NamespaceLifecycle")
	args.Append("feature-gates", "kube:ContextualLogging=false").Set("runtime-config", "api/beta=true").Enable("watch-cache")
	for range 2 {
		config, err := other.Start()
		if err != nil {
			t.Fatal(err)
		}
		c, err := client.New(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		provided := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "provided", Name: "a"}}
		if err := c.Create(t.Context(), provided); err != nil || provided.ResourceVersion == "" {
			t.Errorf("NamespaceAutoProvision makes namespaces; the answer is %v", err)
		}
		if err := other.Stop(); err != nil {
			t.Fatal(err)
		}
	}
}
