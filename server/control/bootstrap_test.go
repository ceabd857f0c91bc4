package control_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/plinth-io/plinth/server/control"
)

var here = control.Address{IP: net.IPv4(192, 0, 2, 7), Port: 6443}

func bootstrap(t testing.TB, c *cluster, at control.Address) {
	t.Helper()
	if err := control.Bootstrap(t.Context(), c.config, at); err != nil {
		t.Fatal(err)
	}
}

func endpointIPs(t *testing.T, c *cluster) (ips []string) {
	t.Helper()
	slice, err := c.client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slice.Endpoints {
		ips = append(ips, e.Addresses...)
	}
	endpoints, err := c.client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var old []string
	for _, s := range endpoints.Subsets {
		for _, a := range s.Addresses {
			old = append(old, a.IP)
		}
	}
	if diff := cmp.Diff(ips, old); diff != "" {
		t.Errorf("EndpointSlice and Endpoints differ: %s", diff)
	}
	return ips
}

func TestBootstrap(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)

	list, err := c.client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
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

	service, err := c.client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
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
		pc, err := c.client.SchedulingV1().PriorityClasses().Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || pc.Value != value {
			t.Errorf("priority class %s: value %d, error %v", name, pc.Value, err)
		}
	}
}

// A restart writes nothing.
func TestBootstrapAgain(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)
	revision := c.store.Revision()
	bootstrap(t, c, here)
	if now := c.store.Revision(); now != revision {
		t.Errorf("second bootstrap wrote: revision %d, was %d", now, revision)
	}
}

// What was deleted comes back, and a namespace that is on its way out is let go.
func TestBootstrapRestores(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)
	if err := c.client.CoreV1().Services("default").Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.client.CoreV1().Namespaces().Delete(t.Context(), "kube-node-lease", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	bootstrap(t, c, here)
	if _, err := c.client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	ns, err := c.client.CoreV1().Namespaces().Get(t.Context(), "kube-node-lease", metav1.GetOptions{})
	if err != nil || ns.Status.Phase != corev1.NamespaceTerminating {
		t.Errorf("namespace that ends: %v, error %v", ns, err)
	}
	run(t, c, control.Config{Controllers: []string{"namespace"}})
	eventually(t, "the namespace is gone", func() bool {
		_, err := c.client.CoreV1().Namespaces().Get(t.Context(), "kube-node-lease", metav1.GetOptions{})
		return errors.IsNotFound(err)
	})
	bootstrap(t, c, here)
	if _, err := c.client.CoreV1().Namespaces().Get(t.Context(), "kube-node-lease", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// The endpoint follows the server when it moves and nobody else can be there.
func TestBootstrapMoved(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, here)
	moved := here
	moved.IP = net.ParseIP("2001:db8::1")
	bootstrap(t, c, moved)
	if diff := cmp.Diff([]string{"2001:db8::1"}, endpointIPs(t, c)); diff != "" {
		t.Error(diff)
	}
}

func TestBootstrapWithoutEndpoint(t *testing.T) {
	c := openCluster(t)
	bootstrap(t, c, control.Address{IP: net.IPv4(127, 0, 0, 1), Port: 6443})
	list, err := c.client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d slices, error %v", len(list.Items), err)
	}
}

// Servers that start together on one database all succeed, all become endpoints, and
// take themselves out again.
func TestBootstrapTogether(t *testing.T) {
	c := openCluster(t)
	want := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
	each := func(f func(ctx context.Context, at control.Address) error) {
		group, ctx := errgroup.WithContext(t.Context())
		for _, ip := range want {
			group.Go(func() error { return f(ctx, control.Address{IP: net.ParseIP(ip), Port: 6443, Shared: true}) })
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	each(func(ctx context.Context, at control.Address) error { return control.Bootstrap(ctx, c.config, at) })
	if diff := cmp.Diff(want, endpointIPs(t, c)); diff != "" {
		t.Error(diff)
	}
	each(func(ctx context.Context, at control.Address) error { return control.RemoveEndpoint(ctx, c.config, at) })
	if left := endpointIPs(t, c); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

func BenchmarkBootstrap(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		c := openCluster(b)
		b.StartTimer()
		bootstrap(b, c, here)
	}
}

// kube-controller-manager reads in a ConfigMap since when the use of secrets' tokens is noted.
// A day that stands there stays; what is no day becomes today.
func TestTokenTracking(t *testing.T) {
	c := openCluster(t)
	maps := c.client.CoreV1().ConfigMaps("kube-system")
	const name = "kube-apiserver-legacy-service-account-token-tracking"
	before := time.Now().UTC().Format(time.DateOnly)
	since := func() string {
		t.Helper()
		bootstrap(t, c, here)
		m, err := maps.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Data["since"]
	}
	isToday := func(day string) bool { return day == before || day == time.Now().UTC().Format(time.DateOnly) }
	if day := since(); !isToday(day) {
		t.Errorf("since %q", day)
	}
	for value, stays := range map[string]bool{`{"since":"2020-02-03"}`: true, `{"since":"2020-02-30"}`: false, `null`: false} {
		if _, err := maps.Patch(t.Context(), name, types.MergePatchType, []byte(`{"data":`+value+`}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if day := since(); isToday(day) == stays {
			t.Errorf("with %s: since %q", value, day)
		}
	}
	if err := maps.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if day := since(); !isToday(day) {
		t.Errorf("after its deletion: since %q", day)
	}
}
