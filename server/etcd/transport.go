package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"log/slog"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// TransportOptions of a Transport. Zero values are replaced by the given defaults, which are etcd's.
type TransportOptions struct {
	// TLS is the configuration of secure listeners. Its protocols are replaced.
	TLS *tls.Config

	MaxConcurrentStreams uint32        // requests and watches at a time on one connection; no limit
	KeepaliveMinTime     time.Duration // clients that ping more often are disconnected; 5 seconds
	KeepaliveInterval    time.Duration // a connection silent for so long is pinged; 2 hours, negative: never
	KeepaliveTimeout     time.Duration // and closed if the ping is not answered for so long; 20 seconds
}

const (
	requestOverhead = 512 << 10        // bytes by which a message may exceed its request, as in etcd
	firstBytes      = 30 * time.Second // the longest wait for the first bytes, which show the protocol
	streamWindow    = 1 << 20          // bytes that a client may send in advance
	writeBuffer     = 64 << 10
	streamWorkers   = 128 // goroutines that serve requests and keep their stacks grown
)

// Transport serves a Server: gRPC, and its pages over HTTP, on the same listeners. gRPC's own transport,
// which is faster than net/http, serves connections that speak only HTTP/2.
type Transport struct {
	o        TransportOptions
	metrics  *requestMetrics
	logger   *slog.Logger
	refused  refusals
	out      *outbox
	large    places
	grpc     *grpc.Server
	http     *http.Server
	pages    *http.Server // for listeners of pages only
	streams  *handoff     // connections for grpc
	requests *handoff     // connections for http
	views    *handoff     // connections for pages
	tls      *tls.Config

	running atomic.Int64 // requests that Shutdown waits for
	serving sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	listeners []net.Listener
	young     map[net.Conn]struct{} // connections whose protocol is not known yet
	closed    bool
}

// NewTransport returns a Transport of s with pages for HTTP. It does no I/O.
func NewTransport(s *Server, pages http.Handler, o TransportOptions) *Transport {
	t := &Transport{o: o.withDefaults(), metrics: &s.metrics.requests, logger: s.o.Log, out: newOutbox(s.o.Log), large: newPlaces(), streams: newHandoff(), requests: newHandoff(), views: newHandoff(), young: map[net.Conn]struct{}{}}
	t.grpc = grpc.NewServer(t.serverOptions(s.o.MaxRequestBytes)...)
	s.Register(t.grpc)
	t.metrics.addMethods(t.grpc.GetServiceInfo())
	t.http, t.pages = s.httpServer(t.grpcOrPages(pages)), s.httpServer(s.Pages())
	if t.o.TLS != nil {
		t.tls = t.o.TLS.Clone()
		t.tls.NextProtos = []string{protocolHTTP2, protocolHTTP1}
		t.tls.GetConfigForClient = noteProtocols
	}
	return t
}

func (s *Server) httpServer(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: firstBytes, ErrorLog: log.New(quiet{s.o}, "", 0)}
}

func (o TransportOptions) withDefaults() TransportOptions {
	orDuration := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	if o.MaxConcurrentStreams == 0 {
		o.MaxConcurrentStreams = math.MaxUint32
	}
	orDuration(&o.KeepaliveMinTime, 5*time.Second)
	orDuration(&o.KeepaliveInterval, 2*time.Hour)
	orDuration(&o.KeepaliveTimeout, 20*time.Second)
	return o
}

// serverOptions returns etcd's options, and those that make small requests fast: windows of a fixed size need
// no pings for measurements, and a few goroutines serve most requests.
func (t *Transport) serverOptions(maxRequest int) []grpc.ServerOption {
	options := []grpc.ServerOption{
		grpc.ForceServerCodecV2(newCodec(t.metrics)),
		grpc.MaxRecvMsgSize(maxRequest + requestOverhead),
		grpc.MaxSendMsgSize(math.MaxInt32),
		grpc.MaxConcurrentStreams(t.o.MaxConcurrentStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: t.o.KeepaliveMinTime}),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(4 * streamWindow),
		grpc.WriteBufferSize(writeBuffer),
		grpc.NumStreamWorkers(streamWorkers),
		grpc.ChainUnaryInterceptor(t.countRequest),
		grpc.ChainStreamInterceptor(t.countStream),
	}
	if t.o.KeepaliveInterval > 0 {
		options = append(options, grpc.KeepaliveParams(keepalive.ServerParameters{Time: t.o.KeepaliveInterval, Timeout: t.o.KeepaliveTimeout}))
	}
	return options
}

func (t *Transport) countRequest(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	t.running.Add(1)
	defer t.running.Add(-1)
	m := t.metrics.methods[info.FullMethod]
	m.begin()
	ctx, place := t.large.enter(ctx, req)
	resp, err := handler(ctx, req)
	m.end(err)
	if err != nil {
		place.leave()
		return nil, err
	}
	switch resp.(type) {
	case *pb.RangeResponse, *pb.TxnResponse: // these may be large
		resp = t.out.track(ctx, resp, place)
	}
	return resp, nil
}

// endsItself reports whether a stream ends by itself. The others last until the client ends them.
func endsItself(method string) bool {
	return method == pb.Maintenance_Snapshot_FullMethodName || method == pb.KV_RangeStream_FullMethodName
}

func (t *Transport) countStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if endsItself(info.FullMethod) {
		t.running.Add(1)
		defer t.running.Add(-1)
	}
	m := t.metrics.methods[info.FullMethod]
	m.begin()
	err := handler(srv, &trackedStream{stream, t.out})
	m.end(err)
	return err
}

// grpcOrPages serves gRPC to clients that also offered HTTP/1, and pages to all others.
func (t *Transport) grpcOrPages(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			t.grpc.ServeHTTP(w, r)
			return
		}
		t.running.Add(1)
		defer t.running.Add(-1)
		pages.ServeHTTP(w, r)
	})
}

// Serve starts to serve listeners, the secure ones with TLS, until Shutdown. It returns at once.
func (t *Transport) Serve(listeners ...Listener) {
	t.serving.Go(func() { _ = t.grpc.Serve(t.streams) })
	t.serving.Go(func() { _ = t.http.Serve(t.requests) })
	t.serving.Go(func() { _ = t.pages.Serve(t.views) })
	for _, l := range listeners {
		t.mu.Lock()
		t.listeners = append(t.listeners, l.Listener)
		t.mu.Unlock()
		t.serving.Go(func() { t.accept(l) })
	}
}

// accept passes each connection to the server of its protocol.
func (t *Transport) accept(l Listener) {
	const longest = time.Second
	pause := time.Millisecond
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // for example, too many open files
			time.Sleep(pause)
			pause = min(2*pause, longest)
			continue
		}
		pause = time.Millisecond
		if t.begin(c) {
			t.serving.Go(func() { t.route(c, l) })
		}
	}
}

// begin records a connection until its protocol is known, so that Shutdown can close it.
func (t *Transport) begin(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		c.Close()
		return false
	}
	t.young[c] = struct{}{}
	return true
}

func (t *Transport) route(c net.Conn, l Listener) {
	conn, isGRPC, err := t.recognize(c, l.Secure)
	t.mu.Lock()
	delete(t.young, c)
	t.mu.Unlock()
	to := t.requests
	switch {
	case l.PagesOnly:
		to = t.views
	case isGRPC:
		to, conn = t.streams, &clientConn{conn, t.out}
	}
	if err != nil || !to.give(conn) {
		c.Close()
	}
	if err != nil && l.Secure {
		t.refused.note(t.logger, c.RemoteAddr(), err)
	}
}

// Shutdown accepts no more connections and requests, waits for the answers to running requests, and then
// closes all connections, which ends their watches. When ctx ends, it cuts off running requests.
func (t *Transport) Shutdown(ctx context.Context) error {
	t.mu.Lock()
	t.closed = true
	for _, l := range t.listeners {
		l.Close()
	}
	for c := range t.young {
		c.Close()
	}
	t.mu.Unlock()
	stopped := make(chan struct{})
	go func() {
		t.grpc.GracefulStop() // asks clients to send nothing more, and also waits for streams
		close(stopped)
	}()
	go func() { _ = t.http.Shutdown(ctx) }()
	err := t.awaitQuiet(ctx, stopped)
	t.grpc.Stop()
	t.http.Close()
	t.pages.Close()
	t.streams.Close()
	t.requests.Close()
	t.views.Close()
	t.serving.Wait()
	return err
}

// awaitQuiet waits until no request runs. It checks several times, because requests that clients sent before
// they heard of the stop are still accepted, unless all streams have ended.
func (t *Transport) awaitQuiet(ctx context.Context, stopped <-chan struct{}) error {
	const pause = 10 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for quiet, looks := 0, 5; quiet < looks; {
		select {
		case <-stopped:
			stopped, looks = nil, 1
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if quiet++; t.running.Load() > 0 {
			quiet = 0
		}
	}
	return nil
}

// quiet logs net/http's messages about clients at debug level.
type quiet struct{ o Options }

func (q quiet) Write(line []byte) (int, error) {
	q.o.Log.Debug("http", "err", strings.TrimSpace(string(line)))
	return len(line), nil
}
