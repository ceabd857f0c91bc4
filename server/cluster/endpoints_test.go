package cluster_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/cluster"
)

func endpointIPs(t *testing.T, c *apitest.API) (ips []string) {
	t.Helper()
	slice, err := c.Client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slice.Endpoints {
		ips = append(ips, e.Addresses...)
	}
	endpoints, err := c.Client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
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

// A server without an identity is the only one of its database. When its address changes, the new
// address replaces the old one in the endpoints.
func TestBootstrapMoved(t *testing.T) {
	c := apitest.Open(t)
	bootstrap(t, c, here)
	moved := here
	moved.IP = net.ParseIP("2001:db8::1")
	bootstrap(t, c, moved)
	if diff := cmp.Diff([]string{"2001:db8::1"}, endpointIPs(t, c)); diff != "" {
		t.Error(diff)
	}
}

func TestBootstrapWithoutEndpoint(t *testing.T) {
	c := apitest.Open(t)
	bootstrap(t, c, cluster.Address{IP: net.IPv4(127, 0, 0, 1), Port: 6443})
	list, err := c.Client.DiscoveryV1().EndpointSlices("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 0 {
		t.Errorf("%d slices, error %v", len(list.Items), err)
	}
}

// Servers start together on one database: the bootstrap of each succeeds, and each becomes an
// endpoint. When they leave, none is left in the endpoints.
func TestBootstrapTogether(t *testing.T) {
	c := apitest.Open(t)
	want := []string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}
	each := func(f func(ctx context.Context, at cluster.Address) error) {
		group, ctx := errgroup.WithContext(t.Context())
		for _, ip := range want {
			group.Go(func() error {
				return f(ctx, cluster.Address{IP: net.ParseIP(ip), Port: 6443, Identity: "process-" + ip})
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	each(func(ctx context.Context, at cluster.Address) error {
		return open(t, c, at).Bootstrap(ctx)
	})
	if diff := cmp.Diff(want, endpointIPs(t, c)); diff != "" {
		t.Error(diff)
	}
	each(func(ctx context.Context, at cluster.Address) error {
		return open(t, c, at).Leave(ctx)
	})
	if left := endpointIPs(t, c); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestBootstrapPorts wants servers with different ports on one machine not to change the port in
// turns: each does so at its start only.
func TestBootstrapPorts(t *testing.T) {
	c := apitest.Open(t)
	at := func(port int) *cluster.Cluster {
		address := here
		address.Port, address.Identity = port, fmt.Sprint("process-", port)
		k := open(t, c, address)
		if err := k.Bootstrap(t.Context()); err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := at(6443)
	at(6444)
	before := c.Store.Revision()
	if err := first.Bootstrap(t.Context()); err != nil || c.Store.Revision() != before {
		t.Errorf("the first server has changed what the second one made: %v", err)
	}
	slice, err := c.Client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil || *slice.Ports[0].Port != 6444 {
		t.Errorf("%v, %v; want the port of the server that started last", slice, err)
	}
}
