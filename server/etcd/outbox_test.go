package etcd

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
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

// Connections end whose clients are slow, the one with the oldest message first, until little enough waits.
func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(100, slog.New(slog.DiscardHandler))
		conns, ended := make([]net.Conn, 4), make([]atomic.Bool, 4)
		for i := range conns {
			ours, theirs := net.Pipe()
			conns[i] = ours
			go func() {
				_, _ = io.Copy(io.Discard, theirs)
				ended[i].Store(true)
			}()
		}
		want := func(when string, want ...bool) {
			t.Helper()
			synctest.Wait()
			for i := range want {
				if ended[i].Load() != want[i] {
					t.Errorf("%s: connection %d has ended: %v", when, i, !want[i])
				}
			}
		}
		o.add(conns[0], 40)
		time.Sleep(time.Second) // so that this one is older
		o.add(conns[1], 40)
		time.Sleep(time.Minute)
		want("as much as there may be", false, false, false, false)
		sent := o.add(conns[2], 40)
		time.Sleep(readPatience / 2)
		want("before it is looked at", false, false, false, false)
		time.Sleep(time.Minute)
		want("too much", true, false, false, false)
		sent()
		for range 3 {
			o.add(conns[3], 40)
		}
		time.Sleep(time.Minute)
		want("until little enough waits", true, true, false, true)
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

// Clients that never read a watch, or a range, hold bounded memory: their connections end. A client whose
// connection has stalled, and ends with them, resumes its watch where it was, and one that reads gets every event.
func TestWatchUnread(t *testing.T) {
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) {
		const puts, size = 60, 500_000
		m := startMemberOn(t, d.Fresh(t), sqlstore.Options{History: -1, WindowBytes: 1 << 20, CacheBytes: 1 << 20}, Options{})
		m.transport.out.bound(2 << 20)
		way := openWay(t, strings.TrimPrefix(m.url, "http://"))
		reads := followKey(t, m.url, puts)
		stalled := followKey(t, "http://"+way.address, puts)
		var first int64
		for i := range puts {
			r, err := m.client.Put(patiently(t), "a", fmt.Sprint(i, strings.Repeat("v", size)))
			if err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				first = r.Header.Revision
			}
			if i == puts/4 {
				way.stall()
			}
		}
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

// bound sets how much may wait.
func (o *outbox) bound(most int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.most = most
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
	w.mu.RLock()
	defer w.mu.RUnlock()
}

func (w *way) stall() { w.mu.Lock() }
func (w *way) goOn()  { w.mu.Unlock() }
