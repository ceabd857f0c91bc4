package etcd

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/sqlstore"
)

// outboxOf returns an outbox of the bounds with connections whose clients have taken what reads says, and what tells
// which of them have ended.
func outboxOf(t *testing.T, quiet, most int64, reads ...func() uint64) (o *outbox, conns []net.Conn, want func(when string, ended ...int)) {
	o = newOutbox(slog.New(slog.DiscardHandler))
	o.quiet, o.most = quiet, most
	over := make([]atomic.Bool, len(reads))
	for i := range reads {
		ours, theirs := net.Pipe()
		conns = append(conns, ours)
		go func() {
			_, _ = io.Copy(io.Discard, theirs)
			over[i].Store(true)
		}()
	}
	o.taken = func(c net.Conn) uint64 { return reads[slices.Index(conns, c)]() }
	return o, conns, func(when string, ended ...int) {
		t.Helper()
		synctest.Wait()
		for i := range conns {
			if over[i].Load() != slices.Contains(ended, i) {
				t.Errorf("%s: connection %d has ended: %v", when, i, over[i].Load())
			}
		}
	}
}

func nothing() uint64 { return 7 }

// steady takes a byte each second.
func steady() uint64 { return uint64(time.Now().Unix()) }

// Connections end whose clients read nothing, the one that has most first, until little enough waits.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, conns, want := outboxOf(t, 100, 1000, nothing, nothing, nothing, nothing)
		o.add(conns[0], 30)
		time.Sleep(time.Second) // so that this one is older
		o.add(conns[1], 25)
		o.add(conns[1], 25)
		time.Sleep(time.Minute)
		want("as much as there may be")
		sent := o.add(conns[2], 40)
		time.Sleep(mostPatience / 2)
		want("before it is known who reads")
		time.Sleep(time.Minute)
		want("too much", 1)
		sent()
		for range 3 {
			o.add(conns[3], 40)
		}
		time.Sleep(time.Minute)
		want("until little enough waits", 1, 0, 3) // the first has been looked at for long
		sent()
		for i := range conns {
			o.forget(conns[i])
			conns[i].Close()
		}
		if o.bytes != 0 || len(o.waiting) != 0 || o.ended != 3 {
			t.Errorf("%d bytes of %d connections are left; %d were ended", o.bytes, len(o.waiting), o.ended)
		}
	})
}

// A client that reads slowly keeps its connection, until more waits in all than there may be for anybody: then the one that has
// most waiting loses it.
func TestOutboxSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, conns, want := outboxOf(t, 100, 300, steady, nothing, steady, steady)
		defer func() {
			for i := range conns {
				o.forget(conns[i])
				conns[i].Close()
			}
		}()
		o.add(conns[0], 90)
		o.add(conns[1], 20)
		time.Sleep(time.Minute)
		want("one of them reads", 1)
		o.add(conns[2], 110)
		o.add(conns[2], 80)
		time.Sleep(time.Minute)
		want("both of them read", 1)
		o.add(conns[3], 30)
		time.Sleep(time.Minute)
		want("more than there may be", 1, 2)
	})
}

// What the other end of a connection has taken is known, whatever it is wrapped in.
func TestTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	theirs, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	ours, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	wrapped := &clientConn{tls.Server(&peeked{Conn: ours}, &tls.Config{}), newOutbox(slog.New(slog.DiscardHandler))}
	before := taken(wrapped)
	if _, err := ours.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		awaitTrue(t, "the bytes are taken", func() bool { return taken(wrapped) == before+1000 })
	}
	ours.Close()
	if got := taken(wrapped); got != 0 {
		t.Errorf("of a connection that is closed: %d", got)
	}
}

// Clients that never read a watch, or a range, hold bounded memory: their connections end. A client whose
// connection has stalled, and ends with them, resumes its watch where it was, and one that reads gets every event.
func TestWatchUnread(t *testing.T) {
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) {
		const puts, size = 60, 500_000
		m := startMemberOn(t, d.Fresh(t), sqlstore.Options{History: -1, WindowBytes: 1 << 20, CacheBytes: 1 << 20}, Options{})
		m.transport.out.bound(2<<20, 2<<20)
		way := openWay(t, strings.TrimPrefix(m.url, "http://"))
		reads := followKey(t, m.url, puts)
		stalled := followKey(t, "http://"+way.address, puts)
		first := putLarge(t, m, 0, puts/4, size)
		way.stall()
		putLarge(t, m, puts/4, puts, size)
		reads()
		before := used()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var unread []grpc.ClientStream
		for range 20 {
			unread = append(unread, unreadWatch(ctx, t, m.url, first))
		}
		awaitTrue(t, "connections end", func() bool { return m.transport.out.lost() >= 15 })
		if now := used(); now.bytes-before.bytes > 400<<20 {
			t.Errorf("memory has grown by %d MiB", (now.bytes-before.bytes)>>20)
		} else {
			t.Logf("memory has grown by %d MiB, and has been given back after %d connections", (now.bytes-before.bytes)>>20, m.transport.out.lost())
		}
		way.goOn()
		stalled()
		ended := make(chan codes.Code)
		for _, stream := range unread {
			go func() {
				var err error
				for err == nil {
					err = stream.RecvMsg(&pb.WatchResponse{})
				}
				ended <- status.Code(err)
			}()
		}
		for i := range unread {
			if i == 15 {
				cancel() // the rest, which were not in the way
			}
			if code := <-ended; code != codes.Unavailable && (i < 15 || code != codes.Canceled) {
				t.Errorf("a stream ends with %v, want Unavailable, after which clients resume", code)
			}
		}
	})
}

// A client that reads slowly keeps its connection while those end whose clients read nothing, and gets every event.
func TestWatchSlow(t *testing.T) {
	const puts, size = 10, 500_000
	m := startMemberOn(t, logtest.SQLite(t), sqlstore.Options{History: -1}, Options{})
	m.transport.out.bound(1<<20, 1<<30)
	way := openWay(t, strings.TrimPrefix(m.url, "http://"))
	slow := followKey(t, "http://"+way.address, puts)
	way.pause.Store(int64(20 * time.Millisecond))
	first := putLarge(t, m, 0, puts, size)
	const unread = 5
	for range unread {
		unreadWatch(t.Context(), t, m.url, first)
	}
	// Three of them have no less than 1 MiB waiting.
	awaitTrue(t, "connections end", func() bool { return m.transport.out.lost() >= unread-2 })
	if n := way.opened.Load(); n != 1 {
		t.Errorf("the client that reads slowly has connected %d times", n)
	}
	way.pause.Store(0)
	slow()
}

// bound sets how much may wait, and has less patience.
func (o *outbox) bound(quiet, most int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.quiet, o.most, o.patience = quiet, most, mostPatience/2
}

// lost returns how many connections were ended.
func (o *outbox) lost() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ended
}

func awaitTrue(t *testing.T, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

// putLarge puts values of size bytes that begin with the numbers [from, to), and returns the revision of the first.
func putLarge(t *testing.T, m *member, from, to, size int) (first int64) {
	t.Helper()
	for i := from; i < to; i++ {
		r, err := m.client.Put(patiently(t), "a", fmt.Sprint(i, strings.Repeat("v", size)))
		if err != nil {
			t.Fatal(err)
		}
		if i == from {
			first = r.Header.Revision
		}
	}
	return first
}

// followKey watches a key by a client of etcd. The function that it returns waits for so many events, each once and in
// order.
func followKey(t *testing.T, url string, events int) (wait func()) {
	t.Helper()
	client := newClient(t, url)
	ctx := patiently(t)
	created := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		next := 0
		for r := range client.Watch(ctx, "a", clientv3.WithCreatedNotify()) {
			if r.Created && next == 0 {
				close(created)
			}
			for _, ev := range r.Events {
				if text := fmt.Sprint(next, "v"); !strings.HasPrefix(string(ev.Kv.Value), text) {
					done <- fmt.Errorf("event %d is %.10s", next, ev.Kv.Value)
					return
				}
				next++
			}
			if next == events {
				done <- nil
				return
			}
		}
		done <- fmt.Errorf("the watch ended after %d events: %v", next, ctx.Err())
	}()
	select {
	case <-created:
	case err := <-done:
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// unreadWatch opens a watch from a revision on a connection of its own, and reads nothing.
func unreadWatch(ctx context.Context, t *testing.T, url string, from int64) grpc.ClientStream {
	t.Helper()
	conn, err := grpc.NewClient(strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithInitialWindowSize(1<<16), grpc.WithInitialConnWindowSize(1<<16))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	stream, err := pb.NewWatchClient(conn).Watch(ctx, grpc.MaxCallRecvMsgSize(1<<30))
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&pb.WatchRequest{RequestUnion: &pb.WatchRequest_CreateRequest{CreateRequest: &pb.WatchCreateRequest{Key: []byte("a"), StartRevision: from}}})
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// way is a proxy between a client and a server, on which nothing goes on while it is stalled.
type way struct {
	address string
	opened  atomic.Int64 // connections
	pause   atomic.Int64 // nanoseconds after each piece
	mu      sync.RWMutex // held while stalled
}

func openWay(t *testing.T, server string) *way {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{address: l.Addr().String()}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			w.opened.Add(1)
			s, err := net.Dial("tcp", server)
			if err != nil {
				c.Close()
				continue
			}
			t.Cleanup(func() { s.Close(); c.Close() })
			_ = s.(*net.TCPConn).SetReadBuffer(16 << 10)
			go w.carry(s, c)
			go w.carry(c, s)
		}
	}()
	return w
}

// carry copies from one connection to the other, and closes both at the end.
func (w *way) carry(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	piece := make([]byte, 4<<10)
	for {
		n, err := from.Read(piece)
		w.pass()
		if err != nil {
			return
		}
		if _, err := to.Write(piece[:n]); err != nil {
			return
		}
	}
}

func (w *way) pass() {
	time.Sleep(time.Duration(w.pause.Load()))
	w.mu.RLock()
	defer w.mu.RUnlock()
}

func (w *way) stall() { w.mu.Lock() }
func (w *way) goOn()  { w.mu.Unlock() }
