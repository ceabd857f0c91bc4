package etcd

import (
	"context"
	"math"
	"net"
	"net/http"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// inMemory is the DSN of a database that ends with its member.
const inMemory = "sqlite://:memory:"

// patience is how long a test waits for what must come: a busy machine is no failure.
const patience = 2 * time.Minute

// member is a Server on a store of its own, and a connection to it.
type member struct {
	*Server
	transport *Transport
	url       string
	conn      *grpc.ClientConn
	client    *clientv3.Client
}

// startMember opens the database at dsn and serves it until the test ends.
func startMember(t testing.TB, dsn string, o Options) *member {
	t.Helper()
	return startMemberOn(t, dsn, sqlstore.Options{History: -1}, o)
}

// startMemberOn is startMember with a Store of other options.
func startMemberOn(t testing.TB, dsn string, so sqlstore.Options, o Options) *member {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: changelog.KindEtcd})
	if err != nil {
		t.Fatalf("open the log: %v", err)
	}
	store, err := sqlstore.Open(t.Context(), log, so)
	if err != nil {
		log.Close()
		t.Fatalf("open the store: %v", err)
	}
	m := &member{Server: New(store, log, o)}
	if m.clusterID == 0 { // until somebody gives it one
		m.clusterID, m.memberID = 1, 2
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	m.serve(t)
	return m
}

// serve answers on a free port of the loopback.
func (m *member) serve(t testing.TB) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := NewTransport(m.Server, http.NotFoundHandler(), TransportOptions{})
	transport.Serve(Listener{Listener: l})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := transport.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
	})
	m.transport, m.url = transport, "http://"+l.Addr().String()
	m.conn = dial(t, l.Addr().String())
	m.client = newClient(t, m.url)
}

func dial(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func newClient(t testing.TB, urls ...string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: urls, DialTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// patiently returns a context that ends with the test, or when patience does.
func patiently(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
