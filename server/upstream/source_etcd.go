package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Etcd says how to connect to an etcd. The fields are kube-apiserver's flags --etcd-servers, --etcd-cafile,
// --etcd-certfile and --etcd-keyfile.
type Etcd struct {
	URLs                      []string
	CAFile, CertFile, KeyFile string
}

// etcdPatience is how long an etcd may take for its first answer, and for one page.
const etcdPatience = 30 * time.Second

const (
	// keepAlive is the pause between two pings of a silent connection, and the longest wait for their
	// answers. An etcd closes connections of clients that ping more often than every 5 seconds.
	keepAlive = 10 * time.Second
	// redialMost is the longest pause between two attempts to reconnect.
	redialMost = 3 * time.Second
)

const (
	maxMessage  = 1 << 30  // the largest answer of any kind
	pageMessage = 32 << 20 // the largest page of keys
)

// dial returns a client whose etcd has answered.
func (e Etcd) dial(ctx context.Context) (*clientv3.Client, error) {
	config, err := e.tls()
	if err != nil {
		return nil, err
	}
	if err := e.tryURLs(ctx, config); err != nil {
		return nil, err
	}
	c, err := clientv3.New(clientv3.Config{
		Endpoints: e.URLs, TLS: config, DialTimeout: etcdPatience, Logger: zap.NewNop(),
		MaxCallRecvMsgSize: maxMessage, MaxCallSendMsgSize: maxMessage,
		DialKeepAliveTime: keepAlive, DialKeepAliveTimeout: keepAlive,
		DialOptions: []grpc.DialOption{grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 200 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: redialMost},
			MinConnectTimeout: redialMost,
		})},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return c, nil
}

func (e Etcd) tls() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.CAFile != "" {
		pem, err := os.ReadFile(e.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-cafile: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--etcd-cafile: %s has no certificate in PEM", e.CAFile)
		}
	}
	if e.CertFile != "" || e.KeyFile != "" {
		pair, err := tls.LoadX509KeyPair(e.CertFile, e.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("--etcd-certfile and --etcd-keyfile: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// ErrPlaintext means that a URL with http:// is that of an etcd with TLS.
var ErrPlaintext = errors.New("it speaks TLS: write https://")

// tryURLs connects to one of the URLs, requests the version and disconnects, because etcd's client does not
// return the reason why it cannot connect.
func (e Etcd) tryURLs(ctx context.Context, config *tls.Config) error {
	const patience = 5 * time.Second
	var all []error
	for _, text := range e.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("%q is no URL of an etcd; write http://HOST:PORT or https://HOST:PORT", text)
		}
		dialer := &net.Dialer{Timeout: patience}
		var conn net.Conn
		if u.Scheme == "https" {
			conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", u.Host)
		} else {
			conn, err = dialer.DialContext(ctx, "tcp", u.Host)
		}
		if err == nil {
			leave := context.AfterFunc(ctx, func() { conn.Close() })
			err = probe(conn, u.Host)
			leave()
			conn.Close()
		}
		if err == nil {
			return nil
		}
		all = append(all, fmt.Errorf("%s: %w", text, err))
	}
	return errors.Join(all...)
}

// probe requests the version of a server, because a server that requires a certificate or TLS says so only in
// answer to a request. Other answers, and none, are not errors here.
func probe(conn net.Conn, host string) error {
	const patience = 2 * time.Second
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "GET /version HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host); err != nil {
		return err
	}
	answer := make([]byte, 1<<10)
	n, err := conn.Read(answer)
	var refusal *net.OpError
	switch {
	case errors.As(err, &refusal) && refusal.Op == "remote error": // a TLS alert
		return err
	case strings.Contains(string(answer[:n]), "HTTP request to an HTTPS server"): // the text of net/http
		return ErrPlaintext
	}
	return nil
}

// etcdSource reads a running etcd.
type etcdSource struct {
	client   *clientv3.Client
	revision int64
	watch    *etcdWatch // the open watch; nil: none
	watches  int        // number of watches that were opened
}

// OpenEtcd returns the keys of an etcd at its newest revision. If other programs write meanwhile, the source
// shows that only after Refresh.
func OpenEtcd(ctx context.Context, e Etcd) (LiveSource, error) {
	c, err := e.dial(ctx)
	if err != nil {
		return nil, err
	}
	s := &etcdSource{client: c}
	if err := s.Refresh(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

func (s *etcdSource) Refresh(ctx context.Context) (err error) {
	s.revision, err = s.Newest(ctx)
	return err
}

func (s *etcdSource) Newest(ctx context.Context) (int64, error) {
	got, err := s.get(ctx, "\x00", clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return got.Header.Revision, nil
}

func (s *etcdSource) get(ctx context.Context, key string, o ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	got, err := s.client.Get(ctx, key, o...)
	return got, s.sourceError(err)
}

// page reads at most limit keys of [from, end). If there is more than one key, they must fit into
// pageMessage: otherwise the error is ResourceExhausted, before the answer is in memory.
func (s *etcdSource) page(ctx context.Context, from, end string, limit int) (*pb.RangeResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, etcdPatience)
	defer cancel()
	most := pageMessage
	if limit == 1 {
		most = maxMessage
	}
	r := &pb.RangeRequest{Key: []byte(from), RangeEnd: []byte(end), Revision: s.revision, Limit: int64(limit)}
	got, err := clientv3.RetryKVClient(s.client).Range(ctx, r, grpc.MaxCallRecvMsgSize(most))
	return got, clientv3.ContextError(ctx, err)
}

// sourceError explains an error of the etcd in plain words; nil if there is none.
func (s *etcdSource) sourceError(err error) error {
	if errors.Is(err, rpctypes.ErrCompacted) {
		return fmt.Errorf("%w; stop the kube-apiservers, use a snapshot, or --follow", ErrCompacted)
	}
	if err != nil {
		return fmt.Errorf("read from etcd at %s: %w", strings.Join(s.client.Endpoints(), ","), err)
	}
	return nil
}

func (s *etcdSource) Revision() int64 { return s.revision }

func (s *etcdSource) Close() error {
	s.watch.close()
	return s.client.Close()
}

func (s *etcdSource) Each(ctx context.Context, prefix string, f func([]Pair) error) error {
	limit := 16 // an etcd bounds a page only by the number of keys
	for next, end := prefix, clientv3.GetPrefixRangeEnd(prefix); ; {
		got, err := s.page(ctx, next, end, limit)
		if status.Code(err) == codes.ResourceExhausted && limit > 1 { // large values follow small ones
			limit = max(1, limit/8)
			continue
		}
		if err != nil {
			return s.sourceError(err)
		}
		if len(got.Kvs) == 0 {
			return nil
		}
		page, size := make([]Pair, len(got.Kvs)), 0
		for i, kv := range got.Kvs {
			page[i] = Pair{string(kv.Key), kv.Value, kv.ModRevision}
			size += len(kv.Value)
		}
		limit = max(1, min(2*limit, pagePairs, pageBytes/(size/len(page)+1)))
		if err := f(page); err != nil || !got.More {
			return err
		}
		next = page[len(page)-1].Key + "\x00"
	}
}
