package server

import (
	"net"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestAdvertised wants the endpoint of the kubernetes Service to be there from the start, in both
// of its objects, wherever the server listens.
func TestAdvertised(t *testing.T) {
	machine := advertised(nil, "0.0.0.0:0", net.IPv4zero)
	for _, test := range []struct {
		name   string
		config Config
		want   string
		named  bool // the serving certificate has the address
	}{
		{"loopback: the machine's address", Config{}, machine.String(), false},
		{"all addresses: the machine's address", Config{Listen: ":0"}, machine.String(), true},
		{"all IPv4 addresses: the machine's IPv4 address", Config{Listen: "0.0.0.0:0"}, machine.String(), true},
		{"an address that is asked for", Config{AdvertiseAddress: net.ParseIP("192.0.2.77")}, "192.0.2.77", true},
		{"an unspecified one counts as none", Config{AdvertiseAddress: net.IPv4zero}, machine.String(), false},
		{"IPv6", Config{AdvertiseAddress: net.ParseIP("2001:db8::7"), ServiceClusterIPRange: []string{"2001:db8:1::/112"}}, "2001:db8::7", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.want == machine.String() && !machine.IsGlobalUnicast() {
				t.Skip("this machine has no address that others can reach")
			}
			s := start(t, test.config)
			client := kubernetes.NewForConfigOrDie(s.InProcess(nil))
			endpoints, err := client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
			if err != nil || len(endpoints.Subsets) != 1 || len(endpoints.Subsets[0].Addresses) != 1 ||
				endpoints.Subsets[0].Addresses[0].IP != test.want || endpoints.Subsets[0].Ports[0].Port != int32(s.port()) {
				t.Errorf("Endpoints: %v %v", endpoints.Subsets, err)
			}
			slice, err := client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
			if err != nil || len(slice.Endpoints) != 1 || slice.Endpoints[0].Addresses[0] != test.want || *slice.Ports[0].Port != int32(s.port()) {
				t.Errorf("EndpointSlice: %v %v", slice, err)
			}
			cert, err := s.pki.Serving(nil)
			if err != nil {
				t.Fatal(err)
			}
			if named := cert.Leaf.VerifyHostname(test.want) == nil; named != test.named {
				t.Errorf("the certificate has %s: %v", test.want, named)
			}
		})
	}
}

// Validation refuses a loopback address as an endpoint, in kube-apiserver too; the server starts.
func TestAdvertisedLoopback(t *testing.T) {
	s := start(t, Config{AdvertiseAddress: net.IPv4(127, 0, 0, 1)})
	list, err := kubernetes.NewForConfigOrDie(s.InProcess(nil)).DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%v %v", list, err)
	}
}

func TestAdvertisedFamily(t *testing.T) {
	err := New(Config{AdvertiseAddress: net.ParseIP("2001:db8::7")}).Open(t.Context())
	if err == nil || !strings.Contains(err.Error(), `Config.AdvertiseAddress: service IP family "10.96.0.0/12" must match public address family "2001:db8::7"`) {
		t.Error(err)
	}
}
