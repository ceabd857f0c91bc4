package etcd

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// leaseBound is how long these tests wait for what must come. A busy machine is no failure.
const leaseBound = 2 * time.Minute

// endpoint is a Server with the clients of its services but KV and Watch.
type endpoint struct {
	*Server
	conn        *grpc.ClientConn
	lease       pb.LeaseClient
	maintenance pb.MaintenanceClient
	cluster     pb.ClusterClient
	stop        func() // once
}

// serveOn serves the database at dsn until the test ends, or stop is called. run says whether its
// lessor and the like run, too.
func serveOn(t testing.TB, dsn string, run bool, o Options) *endpoint {
	t.Helper()
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: changelog.KindEtcd, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlstore.Open(t.Context(), log, sqlstore.Options{History: -1, Log: logger})
	if err != nil {
		t.Fatal(err)
	}
	o.Dir = t.TempDir()
	if o.Log == nil {
		o.Log = logger
	}
	m := &endpoint{Server: New(store, log, o)}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	if run {
		wg.Go(func() { m.Run(ctx) })
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	m.Register(g)
	wg.Go(func() {
		if err := g.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) { // stopped before it began
			t.Errorf("serve: %v", err)
		}
	})
	m.conn, err = grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	m.lease, m.maintenance, m.cluster = pb.NewLeaseClient(m.conn), pb.NewMaintenanceClient(m.conn), pb.NewClusterClient(m.conn)
	m.stop = sync.OnceFunc(func() {
		m.conn.Close()
		g.Stop()
		cancel()
		wg.Wait()
		if err := store.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	t.Cleanup(m.stop)
	return m
}

// bounded returns a context that ends with the test, or when leaseBound is over.
func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), leaseBound)
	t.Cleanup(cancel)
	return ctx
}

// write commits a transaction and returns its revision.
func (m *endpoint) write(t testing.TB, run func(tx *sqlstore.Tx)) int64 {
	t.Helper()
	out, err := m.store.Keys().Do(t.Context(), sqlstore.Transaction{Run: func(tx *sqlstore.Tx) error { run(tx); return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return out.Revision
}

func (m *endpoint) put(t testing.TB, key, value string, lease int64) int64 {
	t.Helper()
	return m.write(t, func(tx *sqlstore.Tx) { tx.Put(key, []byte(value), lease) })
}

func (m *endpoint) grant(t testing.TB, id, ttl int64) *pb.LeaseGrantResponse {
	t.Helper()
	r, err := m.lease.LeaseGrant(bounded(t), &pb.LeaseGrantRequest{ID: id, TTL: ttl})
	if err != nil {
		t.Fatalf("grant lease %d: %v", id, err)
	}
	return r
}

func (m *endpoint) left(t testing.TB, id int64) *pb.LeaseTimeToLiveResponse {
	t.Helper()
	r, err := m.lease.LeaseTimeToLive(bounded(t), &pb.LeaseTimeToLiveRequest{ID: id, Keys: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// keys returns all keys.
func (m *endpoint) keys(t testing.TB) (keys []string) {
	t.Helper()
	if _, err := m.store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := m.store.Keys().Read(t.Context(), func(tx *sqlstore.Tx) error {
		keys = nil
		tx.Ascend("", changelog.End, func(e *sqlstore.Entry) bool { keys = append(keys, e.Key); return true })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(leaseBound); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", leaseBound, what)
		}
	}
}

// wantError checks an error that a client got against one of rpctypes, whose code and text it has.
func wantError(t testing.TB, what string, got, want error) {
	t.Helper()
	g, w := status.Convert(got), status.Convert(want)
	if g.Code() != w.Code() || g.Message() != w.Message() {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// wantCode checks the code of an error that a client got.
func wantCode(t testing.TB, what string, got error, want codes.Code) {
	t.Helper()
	if status.Code(got) != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}
