package etcd

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"
)

const (
	// outboxBytes is how much may wait in memory, in all, for clients that read nothing of it.
	outboxBytes = 64 << 20
	// outboxMost is how much may wait in all, for clients, too, that read slowly.
	outboxMost = 2 * outboxBytes
	// smallMessage is not counted: gRPC itself holds as much for each stream.
	smallMessage = 4 << 10

	// A message is overdue if it waits for longer than readPatience and what it takes at readRate, in bytes a
	// second, but mostPatience at most.
	readPatience = time.Second
	readRate     = 32 << 20
	mostPatience = 5 * time.Second
)

// outbox knows the messages that have been encoded and that gRPC has not written yet. When they are too many
// bytes, connections end on which a message is overdue: to close a stream would not free what waits in it. The
// first to end is that which has most waiting, so that a client who takes much is in nobody's way. Up to most in all, a
// connection ends only if its client has not taken a byte for patience. To the client the end is
// codes.Unavailable, after which clients of etcd connect again and resume their watches behind the last event that
// they have seen.
type outbox struct {
	quiet    int64                 // bytes that wait: above, connections end whose clients read nothing
	most     int64                 // bytes that wait: above, others end, too
	patience time.Duration         // for which a client takes no byte that counts as one that reads nothing
	taken    func(net.Conn) uint64 // bytes that the client has taken; 0: not known
	logger   *slog.Logger

	mu      sync.Mutex // guards what follows
	bytes   int64
	waiting map[net.Conn]*backlog
	timer   *time.Timer // runs while there are too many bytes; else nil
	ended   int         // connections
	next    time.Time   // before it no end of a connection is logged
}

// backlog is what waits for one connection.
type backlog struct {
	messages map[*unsent]struct{}
	bytes    int64
	taken    uint64    // by the client, when it was last looked at
	since    time.Time // when taken was first so much; zero: not looked at
}

// unsent is a message of which gRPC has not written all.
type unsent struct {
	conn  net.Conn
	bytes int64
	since time.Time
}

func (u *unsent) overdue(now time.Time) bool {
	patience := min(mostPatience, readPatience+time.Duration(u.bytes)*time.Second/readRate)
	return now.Sub(u.since) > patience
}

func (b *backlog) overdue(now time.Time) bool {
	for u := range b.messages {
		if u.overdue(now) {
			return true
		}
	}
	return false
}

// heed notes how much the client has taken.
func (b *backlog) heed(taken uint64, now time.Time) {
	if b.since.IsZero() || taken != b.taken {
		b.taken, b.since = taken, now
	}
}

func (b *backlog) silent(now time.Time, patience time.Duration) bool {
	return !b.since.IsZero() && now.Sub(b.since) > patience
}

func newOutbox(logger *slog.Logger) *outbox {
	return &outbox{quiet: outboxBytes, most: outboxMost, patience: mostPatience, taken: taken, logger: logger, waiting: map[net.Conn]*backlog{}}
}

// add counts a message until sent is called, or its connection is closed.
func (o *outbox) add(conn net.Conn, bytes int) (sent func()) {
	u := &unsent{conn, int64(bytes), time.Now()}
	o.mu.Lock()
	defer o.mu.Unlock()
	its := o.waiting[conn]
	if its == nil {
		its = &backlog{messages: map[*unsent]struct{}{}}
		o.waiting[conn] = its
	}
	its.messages[u] = struct{}{}
	its.bytes += u.bytes
	o.bytes += u.bytes
	if o.bytes > o.quiet && o.timer == nil {
		o.timer = time.AfterFunc(readPatience, o.look)
	}
	return func() { o.remove(u) }
}

func (o *outbox) remove(u *unsent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	its := o.waiting[u.conn]
	if its == nil {
		return
	}
	if _, ok := its.messages[u]; !ok {
		return
	}
	its.bytes -= u.bytes
	o.bytes -= u.bytes
	if delete(its.messages, u); len(its.messages) == 0 {
		delete(o.waiting, u.conn)
	}
}

// forget drops what waits for a connection that is closed.
func (o *outbox) forget(conn net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(conn)
}

// drop is forget, and returns how much it was; o.mu is held.
func (o *outbox) drop(conn net.Conn) (bytes int64) {
	if its := o.waiting[conn]; its != nil {
		bytes = its.bytes
	}
	o.bytes -= bytes
	delete(o.waiting, conn)
	return bytes
}

// look ends connections until little enough waits, and looks again if there are too few.
func (o *outbox) look() {
	o.heed()
	for {
		conn, bytes := o.worst()
		if conn == nil {
			return
		}
		o.note(conn.RemoteAddr(), bytes)
		endNow(conn)
	}
}

// heed notes how much the clients have taken for which something waits.
func (o *outbox) heed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for conn, its := range o.waiting {
		its.heed(o.taken(conn), now)
	}
}

// worst takes the connection out that has to end; nil if none has.
func (o *outbox) worst() (conn net.Conn, bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.timer = nil
	if o.bytes <= o.quiet {
		return nil, 0
	}
	now := time.Now()
	for c, its := range o.waiting {
		if its.bytes > bytes && its.overdue(now) && (o.bytes > o.most || its.silent(now, o.patience)) {
			conn, bytes = c, its.bytes
		}
	}
	if conn == nil {
		o.timer = time.AfterFunc(readPatience/4, o.look)
		return nil, 0
	}
	o.ended++
	return conn, o.drop(conn)
}

// note logs that a connection has ended, but not each of those of a flood.
func (o *outbox) note(client net.Addr, bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := time.Now(); !now.Before(o.next) {
		o.logger.Warn("ended a connection whose client does not read, or slowly, as too much waits in memory for such clients", "client", client.String(), "bytes", bytes, "ended so far", o.ended)
		o.next = now.Add(refusedEvery)
	}
}

// endNow closes a connection without TLS's goodbye, which would wait for the client.
func endNow(c net.Conn) { _ = inmost(c).Close() }

// inmost returns the connection of the operating system.
func inmost(c net.Conn) net.Conn {
	for {
		switch inner := c.(type) {
		case *clientConn:
			c = inner.Conn
		case *peeked:
			c = inner.Conn
		case *tls.Conn:
			c = inner.NetConn()
		default:
			return c
		}
	}
}

// clientConn is a connection that the streams on it find by their client's address.
type clientConn struct {
	net.Conn
	out *outbox
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	c.out.forget(c)
	return c.Conn.Close()
}

// RemoteAddr implements net.Conn.
func (c *clientConn) RemoteAddr() net.Addr { return clientAddr{c.Conn.RemoteAddr(), c} }

type clientAddr struct {
	net.Addr
	conn *clientConn
}

// tracked is a message that is counted until it is written.
type tracked struct {
	proto.Message
	ctx   context.Context // of the call
	out   *outbox
	place *place // nil: none
}

// count counts the message if it is large and its connection is known.
func (t *tracked) count(size int) (sent func()) {
	if size < smallMessage {
		return nil
	}
	p, ok := peer.FromContext(t.ctx)
	if !ok {
		return nil
	}
	a, ok := p.Addr.(clientAddr)
	if !ok {
		return nil // net/http serves it, whose writes wait for the client
	}
	counted := t.out.add(a.conn, size)
	if t.place == nil {
		return counted
	}
	return func() {
		counted()
		t.place.leave()
	}
}

// onFree is a pool that tells when the buffer has been freed that comes back.
type onFree struct {
	mem.BufferPool
	sent func()
}

// Put implements mem.BufferPool.
func (p onFree) Put(b *[]byte) {
	p.BufferPool.Put(b)
	p.sent()
}

// trackedStream counts the messages of a stream.
type trackedStream struct {
	grpc.ServerStream
	out *outbox
}

// SendMsg implements grpc.ServerStream.
func (s *trackedStream) SendMsg(m any) error {
	return s.ServerStream.SendMsg(s.out.track(s.Context(), m, nil))
}

func (o *outbox) track(ctx context.Context, m any, its *place) any {
	if message, ok := m.(proto.Message); ok {
		return &tracked{message, ctx, o, its}
	}
	return m
}
