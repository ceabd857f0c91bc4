package control_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/control"
)

// checkEvery is short enough for a test: a Lease runs out after three. On a machine that is
// busy a server may come too late with its own and be out for a round, so every condition is
// waited for.
const checkEvery = time.Second

// A server that dies leaves the kubernetes Service when its Lease has run out; one that lives
// stays; one that stops takes itself out.
func TestReplicas(t *testing.T) {
	c := openCluster(t)
	var servers sync.WaitGroup
	defer servers.Wait()
	start := func(ip string) (at control.Address, die func()) {
		at = control.Address{IP: net.ParseIP(ip), Port: 6443, Shared: true}
		bootstrap(t, c, at)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		servers.Go(func() {
			defer close(ended)
			control.KeepReplica(ctx, c.config, at, "process-"+ip, checkEvery, t.Logf)
		})
		return at, func() { cancel(); <-ended } // or its last round would come after the goodbye
	}
	first, stopFirst := start("192.0.2.1")
	defer stopFirst()
	_, die := start("192.0.2.2")
	_, stopLast := start("2001:db8::3") // not in the slice, which is of the other family
	defer stopLast()
	eventually(t, "all have Leases", func() bool { return hold(t, c, "192.0.2.1", "192.0.2.2", "2001:db8::3") })
	// Not at once: a server that had looked before the second was there takes it out again,
	// for one round.
	eventually(t, "both are in the Service", func() bool {
		return cmp.Equal([]string{"192.0.2.1", "192.0.2.2"}, sliceIPs(t, c))
	})

	die()
	eventually(t, "the dead server is out", func() bool {
		return cmp.Equal([]string{"192.0.2.1"}, sliceIPs(t, c)) && hold(t, c, "192.0.2.1", "2001:db8::3")
	})

	stopFirst()
	if err := control.RemoveEndpoint(t.Context(), c.config, first); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the server that has said goodbye has no Lease", func() bool { return hold(t, c, "2001:db8::3") })
}

// hold tells whether the servers with these addresses have Leases, and no others.
func hold(t testing.TB, c *cluster, ips ...string) bool {
	t.Helper()
	held := leases(t, c)
	slices.Sort(held)
	for i := range ips {
		ips[i] = "process-" + ips[i]
	}
	return slices.Equal(ips, held)
}

// away stands for a database that nobody reaches.
type away struct {
	http.RoundTripper
	now bool
}

func (a *away) RoundTrip(r *http.Request) (*http.Response, error) {
	if a.now {
		return nil, errors.New("the database is away")
	}
	return a.RoundTripper.RoundTrip(r)
}

// A server that has not renewed its Lease because none could stays in the Service.
func TestReplicasOutage(t *testing.T) {
	const ttl = 200 * time.Millisecond
	c := openCluster(t)
	database := &away{}
	config := rest.CopyConfig(c.config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		database.RoundTripper = rt
		return database
	})
	var rounds []func(context.Context) error
	for _, ip := range []string{"192.0.2.1", "192.0.2.2"} {
		at := control.Address{IP: net.ParseIP(ip), Port: 6443, Shared: true}
		bootstrap(t, c, at)
		round, err := control.Replica(config, at, ttl)
		if err != nil {
			t.Fatal(err)
		}
		rounds = append(rounds, round)
	}
	turn := func(server int) {
		t.Helper()
		if err := rounds[server](t.Context()); (err != nil) != database.now {
			t.Fatalf("server %d: %v", server, err)
		}
	}
	turn(1)
	turn(0)
	time.Sleep(ttl * 3 / 2)
	database.now = true
	turn(0)
	database.now = false
	turn(0)
	if got := sliceIPs(t, c); len(got) != 2 || len(leases(t, c)) != 2 {
		t.Errorf("in the Service after the outage: %v", got)
	}
	time.Sleep(ttl * 3 / 2) // it is not back
	turn(0)
	if got := sliceIPs(t, c); len(got) != 1 {
		t.Errorf("in the Service without its other server: %v", got)
	}
}

func leases(t testing.TB, c *cluster) (holders []string) {
	t.Helper()
	list, err := c.client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{
		LabelSelector: "apiserver.kubernetes.io/identity=kube-apiserver",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range list.Items {
		holders = append(holders, *l.Spec.HolderIdentity)
	}
	return holders
}

func sliceIPs(t testing.TB, c *cluster) (ips []string) {
	t.Helper()
	slice, err := c.client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slice.Endpoints {
		ips = append(ips, e.Addresses...)
	}
	return ips
}
