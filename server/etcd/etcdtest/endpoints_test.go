package etcdtest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/etcd"
	"github.com/plinth-io/plinth/server/etcd/etcdtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// endpoint starts a server with an empty key space that ends with the test, and returns HOST:PORT.
type endpoint func(testing.TB) string

// eachEndpoint runs test on plinth with each dialect, side by side.
func eachEndpoint(t *testing.T, test func(*testing.T, endpoint)) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) { test(t, plinthOn(d)) })
}

func plinthOn(d logtest.Dialect) endpoint {
	return func(t testing.TB) string { return servePlinth(t, d.Fresh(t)) }
}

// realEtcd is what plinth is compared with, and on which tests prove that etcd passes them.
func realEtcd(t testing.TB) string {
	return etcdtest.StartAt(t, "--watch-progress-notify-interval=1s")
}

// servePlinth serves the database at dsn as plinth etcd does.
func servePlinth(t testing.TB, dsn string) string {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: sqlstore.KindEtcd})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(t.Context(), log, sqlstore.Options{History: -1})
	if err != nil {
		log.Close()
		t.Fatal(err)
	}
	server := etcd.New(store, log, etcd.Options{WatchProgressInterval: time.Second, Dir: t.TempDir()})
	address, err := etcd.ParseAddress("http://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := address.Listen()
	if err != nil {
		t.Fatal(err)
	}
	transport := etcd.NewTransport(server, server.Pages(), etcd.TransportOptions{})
	transport.Serve(listener)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		server.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		at, done := context.WithCancel(context.Background())
		done() // clients that still watch are cut off
		_ = transport.Shutdown(at)
		cancel()
		<-ended
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return strings.TrimPrefix(listener.URL, "http://")
}
