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
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// endpoint starts a server with an empty key space that ends with the test, and returns HOST:PORT.
type endpoint func(testing.TB) string

// eachEndpoint runs test on plinth with each dialect, side by side.
func eachEndpoint(t *testing.T, test func(*testing.T, endpoint)) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) { test(t, plinthOn(d, sqlstore.Options{})) })
}

// eachMemory is eachEndpoint, and runs test on plinth without memory, too: values and all changes but
// the newest are read from the database.
func eachMemory(t *testing.T, test func(*testing.T, endpoint)) {
	eachEndpoint(t, test)
	t.Run("forgetful", func(t *testing.T) {
		logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
			test(t, plinthOn(d, sqlstore.Options{CacheBytes: 1, WindowBytes: 1}))
		})
	})
}

func plinthOn(d logtest.Dialect, o sqlstore.Options) endpoint {
	return func(t testing.TB) string { return servePlinth(t, d.Fresh(t), o) }
}

// realEtcd is what plinth is compared with, and on which tests prove that etcd passes them.
func realEtcd(t testing.TB) string {
	return etcdtest.StartAt(t, progressFlag)
}

// olderEtcd is realEtcd of the release before.
func olderEtcd(t testing.TB) string {
	return etcdtest.StartOlderAt(t, progressFlag)
}

const progressFlag = "--watch-progress-notify-interval=1s"

// servePlinth serves the database at dsn as plinth etcd does.
func servePlinth(t testing.TB, dsn string, o sqlstore.Options) string {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: changelog.KindEtcd})
	if err != nil {
		t.Fatal(err)
	}
	o.History = -1
	store, err := sqlstore.Open(t.Context(), log, o)
	if err != nil {
		log.Close()
		t.Fatal(err)
	}
	address, err := etcd.ParseAddress("http://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := address.Listen()
	if err != nil {
		t.Fatal(err)
	}
	server := etcd.New(store, log, etcd.Options{WatchProgressInterval: time.Second, Dir: t.TempDir(), ClientURLs: []string{listener.URL}})
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
