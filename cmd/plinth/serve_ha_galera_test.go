package main

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plinth-io/plinth/bench/torture"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// serveGalera starts a plinth with each of the DSNs, on one new database and with one authority.
func serveGalera(t *testing.T, dsns ...string) (ps []*process) {
	t.Helper()
	dir := t.TempDir()
	for i, dsn := range dsns {
		own := filepath.Join(dir, fmt.Sprint(i))
		if i > 0 {
			must(t, torture.CopyAuthority(filepath.Join(dir, "0"), own))
		}
		ps = append(ps, serveFor(t, own, dsn, "--controllers=none"))
	}
	return ps
}

// TestHAGaleraNodes has two plinths that write at one node of a cluster, which then dies, or stops. They go on
// at another node, with all that they had acknowledged, and a watch goes on.
func TestHAGaleraNodes(t *testing.T) {
	g := logtest.StartGalera(t)
	g.Fresh(t)
	ps := serveGalera(t, g.DSN(0, 1, 2), g.DSN(0, 1, 2))
	at := []typedcorev1.ConfigMapInterface{client(t, ps[0]), client(t, ps[1])}
	for _, p := range ps {
		if !strings.Contains(p.logged(), "MariaDB is a Galera cluster") {
			t.Error("a plinth does not say that the database is a cluster")
		}
	}
	for node, end := range []func(*dbserver.Server){(*dbserver.Server).Kill, (*dbserver.Server).Stop} {
		list, err := at[1].List(t.Context(), metav1.ListOptions{})
		must(t, err)
		seen := newWatchingClient(t, at[1], list.ResourceVersion)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		l := newLoad(6) // whose writes may all succeed: plinth tries the other nodes itself
		for i, w := range l.writers {
			l.running.Go(func() { w.runUntil(ctx, t.Context(), at[i%2]) })
		}
		seen.more(t, 50)
		end(g.Nodes[node])
		ended := time.Now()
		for i, p := range ps {
			expectReady(t, p)
			patiently(t, "write again", func() error {
				_, err := at[i].Create(t.Context(), configMap(fmt.Sprintf("back-%d", i), "1"), metav1.CreateOptions{})
				return err
			})
		}
		took := time.Since(ended)
		stop()
		l.wait()
		failed := 0
		for _, w := range l.writers {
			if w.err != nil {
				failed++
				t.Logf("%s: %v", w.name, w.err)
			}
		}
		t.Logf("node %d: both plinths write again after %v; %d of %d writers have met an error", node, took, failed, len(l.writers))
		for _, c := range at {
			l.check(t, c)
		}
		must(t, g.Nodes[node].Start())
		seen.end()
		seen.history.check(t, at[0])
		must(t, at[0].DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	}
}

// TestHAGaleraEverywhere has three plinths that write at three nodes at once, while one client's watch goes from
// one to the next: nothing is missing, and nothing comes twice.
func TestHAGaleraEverywhere(t *testing.T) {
	g := logtest.StartGalera(t)
	t.Run("watch", func(t *testing.T) { testGaleraWatch(t, g) })
	t.Run("torture", func(t *testing.T) { testGaleraTorture(t, g) })
}

func testGaleraWatch(t *testing.T, g *logtest.Galera) {
	g.Fresh(t)
	var at []typedcorev1.ConfigMapInterface
	for _, p := range serveGalera(t, g.DSN(0), g.DSN(1), g.DSN(2)) {
		at = append(at, client(t, p))
	}
	list, err := at[0].List(t.Context(), metav1.ListOptions{})
	must(t, err)
	h := newHistory(list.ResourceVersion)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	l := newLoad(6)
	begun := time.Now()
	for i, w := range l.writers {
		l.running.Go(func() { w.runUntil(ctx, t.Context(), at[i%3]) })
	}
	watchInTurn(t, h, at, 12, 15)
	stop()
	l.wait()
	for _, w := range l.writers {
		if w.err != nil {
			t.Errorf("a write failed: %v", w.err)
		}
	}
	last, err := at[1].Create(t.Context(), configMap("last", "1"), metav1.CreateOptions{})
	must(t, err)
	took := time.Since(begun)
	h.resume(t, at[0], last.ResourceVersion)
	t.Logf("%d changes in %v", h.events, took)
	for _, c := range at {
		h.check(t, c)
		l.check(t, c)
	}
}

// testGaleraTorture has clients work through faults of plinths at a node each, of their ways to it, and of the nodes,
// which die and stop one after the other.
func testGaleraTorture(t *testing.T, g *logtest.Galera) {
	self, err := os.Executable()
	must(t, err)
	o := torture.Options{
		Command: []string{"env", asPlinth + "=1", self, "serve"}, Replicas: 3, Clients: 6, Dir: keptTorture(t),
		For: time.Duration(tortureNumber(t, tortureSeconds, 60)) * time.Second, Seed: uint64(tortureNumber(t, tortureSeed, 1)),
		DSN: g.Nodes[0].DSN(""), Database: &dbserver.InTurn{Cluster: g.Galera}, Progress: t.Output(),
	}
	if os.Getenv(tortureSeconds) != "" {
		o.Pause = 40 * time.Millisecond
	}
	for _, node := range g.Nodes {
		u, err := url.Parse(node.DSN(""))
		must(t, err)
		o.Hosts = append(o.Hosts, u.Host)
	}
	report, err := torture.Run(t.Context(), o)
	if report != nil {
		var text bytes.Buffer
		report.Write(&text)
		t.Logf("\n%s", &text)
	}
	must(t, err)
	if len(report.Broken) > 0 {
		t.Errorf("a guarantee is broken: %s", report.Broken[0].Guarantee)
	}
	if report.Calls[torture.Update] == 0 || report.Events == 0 || len(report.Faults) == 0 {
		t.Error("too few calls, events or faults to prove anything")
	}
}
