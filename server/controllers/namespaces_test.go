package controllers_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/apitest"
)

func TestNamespaceDeletion(t *testing.T) {
	c := openRunning(t)
	c.addNamespace(t, "a")
	c.add(t, "a", "plain")
	c.add(t, "a", "held")
	c.setFinalizers(t, "a", "held", `["example.com/hold"]`)
	for _, name := range []string{"s1", "s2", "s3"} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := c.Client.CoreV1().Secrets("a").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	if _, err := c.Client.CoreV1().Pods("a").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.add(t, "default", "elsewhere")

	namespaces := c.Client.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.gone(t, "a", "plain")
	apitest.Eventually(t, "the status says what remains", func() bool {
		ns, err := namespaces.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || ns.Status.Phase != corev1.NamespaceTerminating {
			t.Fatalf("namespace with a finalizer in it: %v, error %v", ns, err)
		}
		for _, condition := range ns.Status.Conditions {
			if condition.Type == corev1.NamespaceFinalizersRemaining {
				return strings.Contains(condition.Message, "example.com/hold")
			}
		}
		return false
	})
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}}
	if _, err := c.Client.CoreV1().ConfigMaps("a").Create(t.Context(), cm, metav1.CreateOptions{}); !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("create in a terminating namespace: %v", err)
	}
	c.setFinalizers(t, "a", "held", "null")
	apitest.Eventually(t, "the namespace is gone", func() bool {
		_, err := namespaces.Get(t.Context(), "a", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	if c.get(t, "default", "elsewhere") == nil {
		t.Error("an object of another namespace is gone")
	}
}

// TestNamespaceDeletionInOrder: as long as there are pods in a namespace that is being deleted, everything else stays, such as the
// NetworkPolicies that hold for the pods (KEP-5080).
func TestNamespaceDeletionInOrder(t *testing.T) {
	c := openRunning(t)
	c.addNamespace(t, "a")
	c.add(t, "a", "other")
	pods := c.Client.CoreV1().Pods("a")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Finalizers: []string{"example.com/hold"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	namespaces := c.Client.CoreV1().Namespaces()
	if err := namespaces.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the namespace has been looked at", func() bool {
		ns, err := namespaces.Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return len(ns.Status.Conditions) > 0
	})
	if c.get(t, "a", "other") == nil {
		t.Error("the ConfigMap is gone before the pod")
	}
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := pods.Patch(t.Context(), "p", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the namespace is gone", func() bool {
		_, err := namespaces.Get(t.Context(), "a", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
