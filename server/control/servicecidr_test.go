package control_test

import (
	"net"
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/control"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
)

func with(t *testing.T, at control.Address, ranges ...string) control.Address {
	t.Helper()
	r, err := allocate.ParseRanges(ranges, "")
	if err != nil {
		t.Fatal(err)
	}
	at.Ranges = r.Addresses
	return at
}

func defaultCIDR(t *testing.T, c *cluster) *networkingv1.ServiceCIDR {
	t.Helper()
	s, err := c.client.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The default ServiceCIDR is what the server is told at first; it gets a second family later,
// and other ranges are only reported.
func TestServiceCIDR(t *testing.T) {
	r := openRepairing(t)
	for _, c := range []struct {
		ranges, want []string
		reported     string
	}{
		{[]string{"10.96.0.0/12"}, []string{"10.96.0.0/12"}, ""},
		{[]string{"10.96.0.0/12", "fd00::/112"}, []string{"10.96.0.0/12", "fd00::/112"}, ""},
		{[]string{"10.96.0.0/12"}, []string{"10.96.0.0/12", "fd00::/112"}, "KubernetesDefaultServiceCIDRInconsistent"},
		{[]string{"10.96.0.0/12"}, []string{"10.96.0.0/12", "fd00::/112"}, "KubernetesDefaultServiceCIDRInconsistent"},
	} {
		bootstrap(t, r.cluster, with(t, here, c.ranges...))
		s := defaultCIDR(t, r.cluster)
		if !slices.Equal(s.Spec.CIDRs, c.want) || !meta.IsStatusConditionTrue(s.Status.Conditions, "Ready") || r.reported() != c.reported {
			t.Errorf("%v: %v, %v, reported %q", c.ranges, s.Spec.CIDRs, s.Status.Conditions, r.reported())
		}
	}
}

// The kubernetes Service comes back though a server has died between its address and itself,
// or stays away, and is reported, while somebody else has the address.
func TestKubernetesServiceAddress(t *testing.T) {
	r := openRepairing(t)
	services := r.client.CoreV1().Services("default")
	remove := func(name string) {
		if err := services.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	remove("kubernetes")
	r.takeAddress("10.96.0.1", "kubernetes", managed)
	bootstrap(t, r.cluster, here)
	if got := r.address("10.96.0.1"); got != "default/kubernetes" {
		t.Errorf("address of %q", got)
	}
	remove("kubernetes")
	r.service("other", "10.96.0.1", 30007)
	bootstrap(t, r.cluster, here)
	if got := r.address("10.96.0.1"); got != "default/other" || r.reported() != "KubernetesServiceNotCreated" {
		t.Errorf("address of %q, reported %q", got, r.reported())
	}
	remove("other")
	bootstrap(t, r.cluster, here)
	svc, err := services.Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || !net.ParseIP(svc.Spec.ClusterIP).Equal(net.IPv4(10, 96, 0, 1)) {
		t.Errorf("%v %v", svc, err)
	}
}
