package etcd

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/plinth-io/plinth/sqlstore"
)

// hostileStreams is how many streams a client has that sends as much as the server takes, and never
// reads.
const hostileStreams = 20

// attack opens streams on a connection of their own and has each send without end. The connection buffers
// little, so that what is measured is the server's. stop ends them.
func (m *member) attack(t *testing.T, open func(context.Context, *grpc.ClientConn) (send func(i int64) error, err error)) (stop func()) {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(m.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<20))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
		conn.Close()
	})
	t.Cleanup(stop)
	for range hostileStreams {
		send, err := open(ctx, conn)
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for i := int64(0); send(i) == nil; i++ {
			}
		})
	}
	return stop
}

// usage is what the process takes.
type usage struct{ goroutines, bytes int64 }

func used() usage { return usage{int64(runtime.NumGoroutine()), int64(heap())} }

// checkUsage waits until little more is in use than before. Go keeps half a KiB of each goroutine that
// has ended, for the next one.
func checkUsage(t *testing.T, before usage) {
	t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		now := used()
		if now.goroutines <= before.goroutines+10 && now.bytes <= before.bytes+32<<20 {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("%d goroutines and %d bytes are left", now.goroutines-before.goroutines, now.bytes-before.bytes)
		}
	}
}

// TestWatchHostile has clients that create and cancel watches and never read, while large values are
// written. Another client gets every event, memory stays bounded, and all is given back at the end.
func TestWatchHostile(t *testing.T) {
	m := startMemberOn(t, inMemory, sqlstore.Options{History: -1, WindowBytes: 1 << 20, CacheBytes: 1 << 20}, Options{})
	value := strings.Repeat("v", 100_000)
	put := func() int64 {
		r, err := m.client.Put(patiently(t), "a", value)
		if err != nil {
			t.Fatal(err)
		}
		return r.Header.Revision
	}
	first := put()
	other := openWatches(t, m.conn)
	other.create(&pb.WatchCreateRequest{Key: []byte("a")})
	other.want(fmt.Sprintf("0@%d created", first))
	before := used()
	stop := m.attack(t, func(ctx context.Context, conn *grpc.ClientConn) (func(int64) error, error) {
		stream, err := pb.NewWatchClient(conn).Watch(ctx)
		return func(i int64) error { return stream.Send(stormOf(i)) }, err
	})
	var last int64
	for range 200 {
		last = put()
		other.want(fmt.Sprintf("0@%d PUT:a=[100000]/%d/%[1]d/%[3]d/0", last, first, last-first+1))
	}
	now := used()
	t.Logf("each stream has %d goroutines and %d bytes", (now.goroutines-before.goroutines)/hostileStreams, (now.bytes-before.bytes)/hostileStreams)
	if now.bytes-before.bytes > hostileStreams*20<<20 {
		t.Errorf("memory has grown by %d bytes", now.bytes-before.bytes)
	}
	stop()
	checkUsage(t, before)
	last = put()
	other.want(fmt.Sprintf("0@%d PUT:a=[100000]/%d/%[1]d/%[3]d/0", last, first, last-first+1))
}

// stormOf returns the i-th request of a client that creates watches and cancels some of them.
func stormOf(i int64) *pb.WatchRequest {
	if i%3 == 2 {
		return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: i / 3}}}
	}
	return &pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{
		Key: []byte("a"), RangeEnd: []byte("b"), StartRevision: i % 4, PrevKv: i%2 == 0,
	}}}
}

// TestLeaseKeepAliveHostile has clients that ask for leases that are not there and never read an answer.
// Another client's lease is kept alive, memory stays bounded, and all is given back at the end.
func TestLeaseKeepAliveHostile(t *testing.T) {
	m := startMember(t, inMemory, Options{})
	lease, err := m.client.Grant(patiently(t), 1000)
	if err != nil {
		t.Fatal(err)
	}
	keep := func() {
		if r, err := m.client.KeepAliveOnce(patiently(t), lease.ID); err != nil || r.TTL != 1000 {
			t.Fatalf("%v, %v", r, err)
		}
	}
	keep()
	before := used()
	stop := m.attack(t, func(ctx context.Context, conn *grpc.ClientConn) (func(int64) error, error) {
		stream, err := pb.NewLeaseClient(conn).LeaseKeepAlive(ctx)
		return func(i int64) error { return stream.Send(&pb.LeaseKeepAliveRequest{ID: i}) }, err
	})
	for range 200 {
		keep()
	}
	now := used()
	t.Logf("each stream has %d bytes", (now.bytes-before.bytes)/hostileStreams)
	if now.bytes-before.bytes > hostileStreams*20<<20 {
		t.Errorf("memory has grown by %d bytes", now.bytes-before.bytes)
	}
	stop()
	checkUsage(t, before)
	keep()
}

// TestWatchManyIdle has as many watches on one stream as a large client. An event reaches those it is for.
func TestWatchManyIdle(t *testing.T) {
	s := serveWatches(t, sqlstore.Options{}, Options{})
	c := s.open(t.Context())
	const watches = 20_000
	before := used()
	for i := range watches {
		c.create(&pb.WatchCreateRequest{Key: fmt.Appendf(nil, "k/%d", i)})
	}
	for i := range watches {
		c.want(fmt.Sprintf("%d@1 created", i))
	}
	if each := (used().bytes - before.bytes) / watches; each > 10<<10 { // and the stack of a goroutine
		t.Errorf("a watch takes %d bytes", each)
	}
	for i := range 100 {
		n := i * (watches / 100)
		s.do(putting(fmt.Sprint("k/", n), "x"))
		c.want(fmt.Sprintf("%d@%d PUT:k/%d=x/%[2]d/%[2]d/1/0", n, i+2, n))
	}
	for i := range watches {
		c.cancelWatch(int64(i))
	}
	for i := range watches {
		c.want(fmt.Sprintf("%d@101 canceled", i))
	}
}
