package cluster_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
)

func TestBootstrap(t *testing.T) {
	c := apitest.Open(t)
	bootstrap(t, c, here)

	list, err := c.Client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, ns := range list.Items {
		names = append(names, ns.Name)
		if ns.Status.Phase != corev1.NamespaceActive || len(ns.Spec.Finalizers) != 1 {
			t.Errorf("namespace %s: phase %s, finalizers %v", ns.Name, ns.Status.Phase, ns.Spec.Finalizers)
		}
	}
	if diff := cmp.Diff([]string{"default", "kube-node-lease", "kube-public", "kube-system"}, names); diff != "" {
		t.Error(diff)
	}

	service, err := c.Client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	port := service.Spec.Ports[0]
	if service.Spec.ClusterIP != "10.96.0.1" || port.Port != 443 || port.TargetPort.IntValue() != 6443 || port.Name != "https" {
		t.Errorf("service: %+v", service.Spec)
	}
	if diff := cmp.Diff([]string{"192.0.2.7"}, endpointIPs(t, c)); diff != "" {
		t.Error(diff)
	}

	for name, value := range map[string]int32{"system-node-critical": 2000001000, "system-cluster-critical": 2000000000} {
		pc, err := c.Client.SchedulingV1().PriorityClasses().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || pc.Value != value {
			t.Errorf("priority class %s: value %d, error %v", name, pc.Value, err)
		}
	}
}

// The bootstrap after a restart writes nothing.
func TestBootstrapAgain(t *testing.T) {
	c := apitest.Open(t)
	bootstrap(t, c, here)
	revision := c.Store.Revision()
	bootstrap(t, c, here)
	if now := c.Store.Revision(); now != revision {
		t.Errorf("second bootstrap wrote: revision %d, was %d", now, revision)
	}
}

// Bootstrap creates deleted objects anew. A namespace that is terminating is left alone, and
// created anew by the next bootstrap after it is gone.
func TestBootstrapRestores(t *testing.T) {
	c := apitest.Open(t)
	bootstrap(t, c, here)
	if err := c.Client.CoreV1().Services("default").Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Client.CoreV1().Namespaces().Delete(t.Context(), "kube-node-lease", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	bootstrap(t, c, here)
	if _, err := c.Client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	ns, err := c.Client.CoreV1().Namespaces().Get(t.Context(), "kube-node-lease", metav1.GetOptions{})
	if err != nil || ns.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("terminating namespace: %v, error %v", ns, err)
	}
	runNamespaces(t, c)
	apitest.Eventually(t, "the namespace is gone", func() bool {
		_, err := c.Client.CoreV1().Namespaces().Get(t.Context(), "kube-node-lease", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	bootstrap(t, c, here)
	if _, err := c.Client.CoreV1().Namespaces().Get(t.Context(), "kube-node-lease", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func BenchmarkBootstrap(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		c := apitest.Open(b)
		b.StartTimer()
		bootstrap(b, c, here)
	}
}
