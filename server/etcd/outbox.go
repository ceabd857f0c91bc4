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
	// outboxBytes is how much may wait in memory, in total, for clients that read nothing.
	outboxBytes = 64 << 20
	// outboxMost is how much may wait in total, including for clients that read slowly.
	outboxMost = 2 * outboxBytes
	// smallMessage is the size below which messages are not counted: gRPC itself holds as much for each
	// stream.
	smallMessage = 4 << 10

	// A message is overdue if it waits for longer than readPatience plus the time for its size at readRate
	// (bytes per second), or than mostPatience.
	readPatience = time.Second
	readRate     = 32 << 20
	mostPatience = 5 * time.Second
)

// outbox tracks the messages that are encoded and that gRPC has not written yet. If these are too many bytes,
// it ends connections with overdue messages; closing only a stream would not free the messages that wait in
// it. The connection with the most waiting bytes ends first, so that a client with much traffic does not harm
// others. Up to most bytes in total, a connection ends only if its client has not read a byte for patience.
// The client gets codes.Unavailable, after which etcd's clients reconnect, and resume their watches behind
// the last event that they have seen.
type outbox struct {
	quiet    int64                 // waiting bytes above which connections end whose clients read nothing
	most     int64                 // waiting bytes above which other connections end, too
	patience time.Duration         // after so long without a byte read, a client counts as one that reads nothing
	taken    func(net.Conn) uint64 // bytes that the client has read; 0: not known
	logger   *slog.Logger

	mu      sync.Mutex // guards what follows
	bytes   int64
	waiting map[net.Conn]*backlog
	timer   *time.Timer // runs while there are too many bytes; else nil
	ended   int         // connections ended so far
	next    time.Time   // when the end of a connection may be logged next
}

// backlog is the messages that wait for one connection.
type backlog struct {
	messages map[*unsent]struct{}
	bytes    int64
	taken    uint64    // bytes that the client had read at the last check
	since    time.Time // since when taken has this value; zero: never checked
}

// unsent is a message that gRPC has not written completely.
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

// observe records how much the client has read.
func (b *backlog) observe(taken uint64, now time.Time) {
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

// add counts a message until sent is called or its connection is closed.
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

// forget drops the messages of a closed connection.
func (o *outbox) forget(conn net.Conn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.drop(conn)
}

// drop is forget, and returns the number of bytes. o.mu must be held.
func (o *outbox) drop(conn net.Conn) (bytes int64) {
	if its := o.waiting[conn]; its != nil {
		bytes = its.bytes
	}
	o.bytes -= bytes
	delete(o.waiting, conn)
	return bytes
}

// enforce ends connections until few enough bytes wait, and schedules the next check if there are still too
// many.
func (o *outbox) look() {
	o.observe()
	for {
		conn, bytes := o.worst()
		if conn == nil {
			return
		}
		o.note(conn.RemoteAddr(), bytes)
		endNow(conn)
	}
}

// observe records how much the clients with waiting messages have read.
func (o *outbox) observe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	for conn, its := range o.waiting {
		its.observe(o.taken(conn), now)
	}
}

// worst removes and returns the connection that has to end; nil: none.
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

// note logs that a connection has ended, with a limit on the number of records.
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

// inmost returns the operating system's connection below wrappers.
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

// clientConn is a connection that its streams find by the client's address.
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
	ctx   context.Context // the context of the call
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
		return nil // it is served by net/http, whose writes wait for the client
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

// onFree is a buffer pool that calls a function when the buffer is freed.
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
