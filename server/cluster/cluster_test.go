package cluster_test

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/cluster"
	"github.com/plinth-io/plinth/server/controllers"
)

var here = cluster.Address{IP: net.IPv4(192, 0, 2, 7), Port: 6443}

func bootstrap(t testing.TB, c *apitest.API, at cluster.Address) {
	t.Helper()
	if err := open(t, c, at).Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// open returns a cluster with a server at an address.
func open(t testing.TB, c *apitest.API, at cluster.Address) *cluster.Cluster {
	t.Helper()
	opened, err := cluster.New(cluster.Config{
		Client: c.Config, Store: c.Store, Here: at, Times: cluster.Times{CheckReplicas: checkEvery}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// runNamespaces runs the controller that deletes terminating namespaces, until the test ends.
func runNamespaces(t *testing.T, c *apitest.API) {
	t.Helper()
	m, err := controllers.New(controllers.Config{
		API: controllers.API{Client: c.Config, Kinds: c.Kinds}, Store: c.Store, Controllers: []string{"namespace"},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
}
