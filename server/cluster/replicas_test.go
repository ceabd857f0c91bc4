package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordination "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/cluster"
)

// checkEvery is short enough for a test: a Lease runs out after three times checkEvery. On a busy
// machine a server may renew its Lease too late and be out of the Service for a round, so the test
// waits for every condition.
const checkEvery = time.Second

// A server that dies is removed from the kubernetes Service when its Lease has run out, and servers
// that live stay. A server that stops removes itself.
func TestReplicas(t *testing.T) {
	c := apitest.Open(t)
	var servers sync.WaitGroup
	defer servers.Wait()
	start := func(ip string) (server *cluster.Cluster, die func()) {
		at := cluster.Address{IP: net.ParseIP(ip), Port: 6443, Identity: "process-" + ip}
		server = open(t, c, at)
		if err := server.Bootstrap(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		servers.Go(func() {
			defer close(ended)
			server.KeepReplica(ctx)
		})
		return server, func() { cancel(); <-ended } // without the wait its last round would come after Leave
	}
	first, stopFirst := start("192.0.2.1")
	defer stopFirst()
	_, die := start("192.0.2.2")
	_, stopLast := start("2001:db8::3") // not in the slice, which is of the other family
	defer stopLast()
	apitest.Eventually(t, "all have Leases", func() bool { return hold(t, c, "192.0.2.1", "192.0.2.2", "2001:db8::3") })
	// This takes a while: a server that had read the Leases before the second server wrote its own
	// removes the second server for one round.
	apitest.Eventually(t, "both are in the Service", func() bool {
		return cmp.Equal([]string{"192.0.2.1", "192.0.2.2"}, sliceIPs(t, c))
	})

	die()
	apitest.Eventually(t, "the dead server is out", func() bool {
		return cmp.Equal([]string{"192.0.2.1"}, sliceIPs(t, c)) && hold(t, c, "192.0.2.1", "2001:db8::3")
	})

	stopFirst()
	if err := first.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "the server that has left has no Lease", func() bool { return hold(t, c, "2001:db8::3") })
}

// All addresses have one port. That of a server which is gone is replaced by that of one which is there, and by
// that of none in turns: servers with different ports leave each other's.
func TestReplicasPorts(t *testing.T) {
	const ttl = 200 * time.Millisecond
	c := apitest.Open(t)
	start := func(port int) (server *cluster.Cluster, round func()) {
		server = open(t, c, cluster.Address{IP: net.ParseIP("192.0.2.1"), Port: port, Identity: fmt.Sprint("process-", port)})
		turn := server.Replica(ttl)
		round = func() {
			t.Helper()
			if err := turn(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.Bootstrap(t.Context()); err != nil {
			t.Fatal(err)
		}
		round()
		return server, round
	}
	want := func(when string, port int32) {
		t.Helper()
		if got := servicePorts(t, c); !slices.Equal(got, []int32{port, port}) {
			t.Errorf("%s: the ports are %v, want %d", when, got, port)
		}
	}
	_, first := start(6443)
	second, _ := start(6444)
	first()
	want("both are there", 6444)
	if err := second.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	first()
	want("the second has stopped", 6443)

	start(6445) // and dies
	first()
	want("another was started", 6445)
	time.Sleep(ttl * 3 / 2)
	first()
	want("its Lease has expired", 6443)

	_, old := start(6446)
	old()
	lease := oneLease(t, c, "process-6446")
	delete(lease.Annotations, "plinth.io/port")
	if _, err := c.Client.CoordinationV1().Leases("kube-system").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	first()
	want("one of an older release does not tell its port", 6446)
}

// servicePorts returns the ports of the kubernetes Service: those in the slice, and those in the Endpoints.
func servicePorts(t testing.TB, c *apitest.API) (ports []int32) {
	t.Helper()
	slice, err := c.Client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range slice.Ports {
		ports = append(ports, *p.Port)
	}
	old, err := c.Client.CoreV1().Endpoints("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range old.Subsets {
		for _, p := range s.Ports {
			ports = append(ports, p.Port)
		}
	}
	return ports
}

func oneLease(t testing.TB, c *apitest.API, holder string) *coordination.Lease {
	t.Helper()
	list, err := c.Client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if *list.Items[i].Spec.HolderIdentity == holder {
			return &list.Items[i]
		}
	}
	t.Fatalf("%s has no Lease", holder)
	return nil
}

// hold tells whether the servers with these addresses have Leases, and no others.
func hold(t testing.TB, c *apitest.API, ips ...string) bool {
	t.Helper()
	held := leases(t, c)
	slices.Sort(held)
	for i := range ips {
		ips[i] = "process-" + ips[i]
	}
	return slices.Equal(ips, held)
}

// away is a transport that fails, as if the database were away, while now is set.
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

// While the database is away no server can renew its Lease. Afterwards all stay in the Service.
func TestReplicasOutage(t *testing.T) {
	const ttl = 200 * time.Millisecond
	c := apitest.Open(t)
	database := &away{}
	config := clientrest.CopyConfig(c.Config)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper {
		database.RoundTripper = rt
		return database
	})
	var rounds []func(context.Context) error
	for _, ip := range []string{"192.0.2.1", "192.0.2.2"} {
		at := cluster.Address{IP: net.ParseIP(ip), Port: 6443, Identity: "process-" + ip}
		bootstrap(t, c, at)
		server, err := cluster.New(cluster.Config{Client: config, Store: c.Store, Here: at})
		if err != nil {
			t.Fatal(err)
		}
		rounds = append(rounds, server.Replica(ttl))
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
	time.Sleep(ttl * 3 / 2) // the other server does not renew its Lease
	turn(0)
	if got := sliceIPs(t, c); len(got) != 1 {
		t.Errorf("in the Service without its other server: %v", got)
	}
}

func leases(t testing.TB, c *apitest.API) (holders []string) {
	t.Helper()
	list, err := c.Client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{
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

func sliceIPs(t testing.TB, c *apitest.API) (ips []string) {
	t.Helper()
	slice, err := c.Client.DiscoveryV1().EndpointSlices("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slice.Endpoints {
		ips = append(ips, e.Addresses...)
	}
	return ips
}
