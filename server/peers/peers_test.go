package peers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/storetest"
)

const leases = "/registry/coordination.k8s.io/leases/kube-system/"

// putLease writes the Lease of a server into a store.
func putLease(t *testing.T, store *sqlstore.Store, identity, tell string) {
	t.Helper()
	_, err := storetest.Put(t.Context(), store, leases+"apiserver-"+identity, fmt.Sprintf(
		`{"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"apiserver-%[1]s","namespace":"kube-system","labels":{%[2]q:"kube-apiserver"},"annotations":{%[3]q:%[4]q}},"spec":{"holderIdentity":%[1]q}}`,
		identity, cluster.IdentityLabel, cluster.TellNote, tell))
	if err != nil {
		t.Fatal(err)
	}
}

// network brings requests to the Peers at an address.
type network struct {
	mu      sync.Mutex
	at      map[string]*Peers
	cut     bool
	heard   map[string]int // by address
	waiting chan struct{}  // nil: requests do not wait
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	to, cut, waiting := n.at[r.URL.Host], n.cut, n.waiting
	n.mu.Unlock()
	if cut || to == nil {
		return nil, errors.New("no route to host")
	}
	if waiting != nil {
		select {
		case <-waiting:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	code := http.StatusNoContent
	if err := to.Hear(r.URL.Query()); err != nil {
		code = http.StatusNotFound
	} else {
		n.mu.Lock()
		n.heard[r.URL.Host]++
		n.mu.Unlock()
	}
	return &http.Response{StatusCode: code, Status: http.StatusText(code), Body: http.NoBody}, nil
}

func (n *network) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
}

func (n *network) heardAt(address string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.heard[address]
}

// newPeers runs Peers with the Leases of a and b, each with a store of its own.
func newPeers(t *testing.T, n *network, identities ...string) (all []*Peers) {
	for _, identity := range identities {
		store := storetest.Open(t, storetest.Memory, sqlstore.Options{})
		for _, other := range identities {
			putLease(t, store, other, other+":6443")
		}
		p := New(Config{Store: store, Identity: identity, Transport: n, Beat: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
		n.set(func() { n.at[identity+":6443"] = p })
		all = append(all, p)
	}
	for _, p := range all {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() { p.Run(ctx) })
		t.Cleanup(func() { cancel(); running.Wait() })
	}
	return all
}

func newNetwork() *network { return &network{at: map[string]*Peers{}, heard: map[string]int{}} }

// TestAll has servers hear of each other, be cut off from each other, and hear again.
func TestAll(t *testing.T) {
	n := newNetwork()
	all := newPeers(t, n, "a", "b", "c")
	every := func(want bool) func() bool {
		return func() bool {
			for _, p := range all {
				if p.All() != want {
					return false
				}
			}
			return true
		}
	}
	apitest.Eventually(t, "all are heard by all", every(true))
	n.set(func() { n.cut = true })
	apitest.Eventually(t, "the cut is noticed", every(false))
	n.set(func() { n.cut = false })
	apitest.Eventually(t, "all are heard again", every(true))
	putLease(t, all[0].c.Store, "old", "") // of a version that tells nobody
	apitest.Eventually(t, "one that tells nobody is noticed", func() bool { return !all[0].All() })
}

func TestAlone(t *testing.T) {
	p := newPeers(t, newNetwork(), "a")[0]
	apitest.Eventually(t, "a server that is alone", p.All)
}

// TestOneWay has a server that hears others, and cannot be told itself.
func TestOneWay(t *testing.T) {
	n := newNetwork()
	all := newPeers(t, n, "a", "b")
	n.set(func() { delete(n.at, "b:6443") })
	apitest.Eventually(t, "b is heard by a, and a not by b", func() bool { return all[0].All() && !all[1].All() })
}

// TestWrite tells others of a write after a quiet time, long before the next beat.
func TestWrite(t *testing.T) {
	n := newNetwork()
	all := newPeers(t, n, "a", "b")
	for _, p := range all {
		p := p
		apitest.Eventually(t, "all are heard", p.All)
	}
	for range 3 {
		time.Sleep(2 * quiet) // is the time without writes that the test is about
		before := n.heardAt("b:6443")
		if _, err := storetest.Put(t.Context(), all[0].c.Store, "/registry/core/configmaps/default/a", `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}`); err != nil {
			t.Fatal(err)
		}
		apitest.Eventually(t, "b was told", func() bool { return n.heardAt("b:6443") > before })
	}
}

// TestHear refuses what is not for the server, and what is no message.
func TestHear(t *testing.T) {
	p := newPeers(t, newNetwork(), "a")[0]
	for _, c := range []struct {
		query string
		want  bool
	}{
		{"from=b&to=a&revision=1", true},
		{"from=b&to=a&revision=9223372036854775807", true}, // the database says what is there
		{"from=b&to=c&revision=1", false},
		{"from=b&revision=1", false},
		{"from=b&to=a&revision=x", false},
		{"from=b&to=a", false},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Hear(query); (err == nil) != c.want {
			t.Errorf("%s: %v", c.query, err)
		}
	}
	if err := p.Hear(url.Values{"from": {strings.Repeat("a", longestIdentity+1)}, "to": {"a"}, "revision": {"1"}}); err == nil {
		t.Error("an endless identity is remembered")
	}
	for i := range 2 * mostHeard {
		_ = p.Hear(url.Values{"from": {fmt.Sprint(i)}, "to": {"a"}, "revision": {"1"}})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.heard) > mostHeard {
		t.Errorf("%d servers are remembered", len(p.heard))
	}
}

// TestSlow has a server that does not answer: no more than one request to it is under way, and Run ends it.
func TestSlow(t *testing.T) {
	n := newNetwork()
	n.waiting = make(chan struct{})
	all := newPeers(t, n, "a", "b")
	for range 50 {
		all[0].tellAll(t.Context())
	}
	all[0].mu.Lock()
	busy := all[0].lines["b"].busy
	all[0].mu.Unlock()
	if !busy {
		t.Error("the request has ended")
	}
	n.set(func() { close(n.waiting); n.waiting = nil })
	apitest.Eventually(t, "all are heard", func() bool { return all[0].All() && all[1].All() })
}
