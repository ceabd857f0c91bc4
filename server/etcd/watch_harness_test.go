package etcd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

// watchServed is a Server that only serves watches, on a Store that the test writes to.
type watchServed struct {
	pb.UnsafeWatchServer
	t     testing.TB
	s     *Server
	store *sqlstore.Store
	grpc  *grpc.Server
	conn  *grpc.ClientConn
	away  atomic.Bool // the log says that it cannot be used

	opened  int // streams, by clients
	mu      sync.Mutex
	streams []*watchStream
	serving sync.WaitGroup
}

// Watch is that of watchServer. It lets the test see the stream.
func (s *watchServed) Watch(client pb.Watch_WatchServer) error {
	st := newWatchStream(s.s, client)
	defer s.serving.Done()
	s.mu.Lock()
	s.serving.Add(1)
	s.streams = append(s.streams, st)
	s.mu.Unlock()
	return st.serve()
}

// ended waits until all streams that clients have opened have come, none is served and none has a
// goroutine.
func (s *watchServed) ended() {
	eventually(s.t, "all streams have come", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.streams) == s.opened
	})
	s.serving.Wait()
	for _, st := range s.streams {
		st.wg.Wait()
	}
}

// shakyLog is a log that can say that its database is away.
type shakyLog struct {
	changelog.Log
	away *atomic.Bool
}

func (l shakyLog) Condition() error {
	if l.away.Load() {
		return changelog.ErrUnavailable
	}
	return l.Log.Condition()
}

func serveWatches(t testing.TB, so sqlstore.Options, o Options) *watchServed {
	t.Helper()
	return serveWatchesAt(t, "sqlite://:memory:", so, o)
}

func serveWatchesAt(t testing.TB, dsn string, so sqlstore.Options, o Options) *watchServed {
	t.Helper()
	log, err := dialects.Open(t.Context(), dsn, dialects.Options{Kind: changelog.KindEtcd})
	if err != nil {
		t.Fatal(err)
	}
	s := &watchServed{t: t}
	store, err := sqlstore.Open(t.Context(), shakyLog{log, &s.away}, so)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	o.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	g := grpc.NewServer()
	s.s, s.store, s.grpc = New(store, log, o), store, g
	pb.RegisterWatchServer(g, s)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = g.Serve(listener) }()
	t.Cleanup(g.Stop)
	s.conn, err = grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.conn.Close() })
	return s
}

// write is one operation of a transaction: a delete if value is nil.
type write struct {
	key   string
	value []byte
}

func putting(key, value string) write { return write{key, []byte(value)} }
func deleting(key string) write       { return write{key: key} }

// do commits a transaction and returns its revision.
func (s *watchServed) do(writes ...write) int64 {
	s.t.Helper()
	o, err := s.store.Keys().Do(context.Background(), sqlstore.Transaction{Run: func(tx *sqlstore.Tx) error {
		for _, w := range writes {
			if w.value == nil {
				tx.Delete(w.key)
			} else {
				tx.Put(w.key, w.value, 0)
			}
		}
		return nil
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	return o.Revision
}

func (s *watchServed) compact(revision int64) {
	s.t.Helper()
	if _, err := s.store.Keys().CutTo(s.t.Context(), revision, true); err != nil {
		s.t.Fatal(err)
	}
}

// watchClient is one stream. What it receives is kept until the test asks.
type watchClient struct {
	t      testing.TB
	stream pb.Watch_WatchClient
	cancel context.CancelFunc

	mu       sync.Mutex
	arrived  chan struct{}
	received []*pb.WatchResponse
	err      error
}

// openWatches opens a stream on a connection to any member.
func openWatches(t testing.TB, conn *grpc.ClientConn) *watchClient {
	t.Helper()
	s := &watchServed{t: t, conn: conn}
	return s.open(t.Context())
}

func (s *watchServed) open(ctx context.Context) *watchClient {
	s.t.Helper()
	c := s.silent(ctx)
	go c.receive()
	return c
}

// silent opens a stream of a client that reads nothing.
func (s *watchServed) silent(ctx context.Context) *watchClient {
	s.t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	s.t.Cleanup(cancel)
	stream, err := pb.NewWatchClient(s.conn).Watch(ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	s.opened++
	return &watchClient{t: s.t, stream: stream, cancel: cancel, arrived: make(chan struct{})}
}

func (c *watchClient) receive() {
	for {
		r, err := c.stream.Recv()
		c.mu.Lock()
		if err == nil {
			c.received = append(c.received, r)
		} else {
			c.err = err
		}
		close(c.arrived)
		c.arrived = make(chan struct{})
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *watchClient) send(r *pb.WatchRequest) {
	c.t.Helper()
	if err := c.stream.Send(r); err != nil {
		c.t.Fatal(err)
	}
}

func (c *watchClient) create(r *pb.WatchCreateRequest) {
	c.t.Helper()
	c.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: r}})
}

func (c *watchClient) cancelWatch(id int64) {
	c.t.Helper()
	c.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CancelRequest{CancelRequest: &pb.WatchCancelRequest{WatchId: id}}})
}

func (c *watchClient) askProgress() {
	c.t.Helper()
	c.send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_ProgressRequest{ProgressRequest: &pb.WatchProgressRequest{}}})
}

// settle waits until everything that was asked before has been answered, if it is answered.
func (c *watchClient) settle() {
	c.t.Helper()
	c.create(&pb.WatchCreateRequest{Key: []byte("b"), RangeEnd: []byte("a")})
	r, err := c.next()
	if err != nil || r.CancelReason != errWatchRange.Error() {
		c.t.Fatal("unexpected answer", r, err)
	}
}

// next returns the next response, or the error that has ended the stream.
func (c *watchClient) next() (*pb.WatchResponse, error) {
	c.t.Helper()
	late := time.After(patience)
	for {
		c.mu.Lock()
		arrived := c.arrived
		if len(c.received) > 0 {
			r := c.received[0]
			c.received = c.received[1:]
			c.mu.Unlock()
			return r, nil
		}
		err := c.err
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-arrived:
		case <-late:
			c.t.Fatal("no response")
		}
	}
}

// want compares the next responses with what they should be, as tell has them.
func (c *watchClient) want(want ...string) {
	c.t.Helper()
	var got []string
	for range want {
		r, err := c.next()
		if err != nil {
			got = append(got, err.Error())
			break
		}
		got = append(got, tell(r))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		c.t.Fatal(diff)
	}
}

// tell writes a response in short, with all that it has but for the ids of cluster and member.
func tell(r *pb.WatchResponse) string {
	s := fmt.Sprintf("%d@%d", r.WatchId, r.Header.Revision)
	for _, is := range []struct {
		set  bool
		name string
	}{{r.Created, "created"}, {r.Canceled, "canceled"}, {r.Fragment, "fragment"}} {
		if is.set {
			s += " " + is.name
		}
	}
	if r.CompactRevision != 0 {
		s += fmt.Sprintf(" compacted:%d", r.CompactRevision)
	}
	if r.CancelReason != "" {
		s += " " + r.CancelReason
	}
	for _, ev := range r.Events {
		s += " " + tellEvent(ev)
	}
	return s
}

func tellEvent(ev *mvccpb.Event) string {
	s := ev.Type.String() + ":" + tellKV(ev.Kv)
	if ev.PrevKv != nil {
		s += "<" + tellKV(ev.PrevKv)
	}
	return s
}

func tellKV(kv *mvccpb.KeyValue) string {
	value := string(kv.Value)
	if len(value) > 20 {
		value = fmt.Sprintf("[%d]", len(value))
	}
	return fmt.Sprintf("%s=%s/%d/%d/%d/%d", kv.Key, value, kv.CreateRevision, kv.ModRevision, kv.Version, kv.Lease)
}
