package cluster_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/kind/builtin/allocate"
)

func with(t *testing.T, at cluster.Address, ranges ...string) cluster.Address {
	t.Helper()
	r, err := allocate.ParseRanges(ranges, "")
	if err != nil {
		t.Fatal(err)
	}
	at.Ranges = r
	return at
}

func withPorts(t *testing.T, at cluster.Address, ports string) cluster.Address {
	t.Helper()
	r, err := allocate.ParseRanges(nil, ports)
	if err != nil {
		t.Fatal(err)
	}
	at.Ranges = r
	return at
}

func defaultCIDR(t *testing.T, c *apitest.API) *networkingv1.ServiceCIDR {
	t.Helper()
	s, err := c.Client.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The default ServiceCIDR has the ranges of the first server that starts. A later server may add a
// second IP family. Any other difference is reported in an event and not written.
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
		bootstrap(t, r.API, with(t, here, c.ranges...))
		s := defaultCIDR(t, r.API)
		if !slices.Equal(s.Spec.CIDRs, c.want) || !meta.IsStatusConditionTrue(s.Status.Conditions, "Ready") || r.reported() != c.reported {
			t.Errorf("%v: %v, %v, reported %q", c.ranges, s.Spec.CIDRs, s.Status.Conditions, r.reported())
		}
	}
}
