package cluster_test

import (
	"net"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// If a server died after it had taken the address and before it created the kubernetes Service,
// another server creates the Service. If another Service has the address, an event reports that.
func TestKubernetesServiceAddress(t *testing.T) {
	r := openRepairing(t)
	services := r.Client.CoreV1().Services("default")
	remove := func(name string) {
		if err := services.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove("kubernetes")
	r.takeAddress("10.96.0.1", "kubernetes", managed)
	bootstrap(t, r.API, here)
	if got := r.address("10.96.0.1"); got != "default/kubernetes" {
		t.Errorf("address of %q", got)
	}
	remove("kubernetes")
	r.service("other", "10.96.0.1", 30007)
	bootstrap(t, r.API, here)
	if got := r.address("10.96.0.1"); got != "default/other" || r.reported() != "KubernetesServiceNotCreated" {
		t.Errorf("address of %q, reported %q", got, r.reported())
	}
	remove("other")
	bootstrap(t, r.API, here)
	svc, err := services.Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || !net.ParseIP(svc.Spec.ClusterIP).Equal(net.IPv4(10, 96, 0, 1)) {
		t.Errorf("%v %v", svc, err)
	}
}
