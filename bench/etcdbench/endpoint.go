package etcdbench

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"go.uber.org/zap"
	"google.golang.org/grpc/status"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// tlsConfig returns nil if there are no files.
func tlsConfig(t measure.TLS) (*tls.Config, error) {
	if t == (measure.TLS{}) {
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		pem, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate", t.CA)
		}
	}
	if t.Cert != "" || t.Key != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// endpoint is what a run has of one endpoint.
type endpoint struct {
	measure.Server
	clients []*kubernetes.Client
	servers []corev1client.CoreV1Interface // of a kube-apiserver, which has no clients
	prefix  string                         // of the keys of the run
}

// dial connects to an endpoint.
func (r *run) dial(ctx context.Context, other measure.Other) (*endpoint, error) {
	e := &endpoint{Server: measure.Server{Endpoint: figures.Endpoint{Name: other.Name}, PIDs: r.PIDs[other.Name]}, prefix: r.prefix}
	config, err := tlsConfig(r.TLS)
	if err != nil {
		return nil, fmt.Errorf("read the files for TLS: %w", err)
	}
	if !strings.HasPrefix(other.At, "https://") && !strings.HasPrefix(other.At, "unixs://") {
		config = nil
	}
	if err := reach(ctx, other.At); err != nil {
		return nil, fmt.Errorf("%s is not reached: %w; start it, or write the URL of one that runs", other.At, err)
	}
	for range measure.Connections { // kube-apiserver has one for each resource
		c, err := kubernetes.New(clientv3.Config{
			Endpoints: []string{other.At}, TLS: config, DialTimeout: measure.DialTimeout, Logger: zap.NewNop(),
			DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: 10 * time.Second, // as kube-apiserver
		})
		if err != nil {
			e.Disconnect()
			return nil, err
		}
		e.clients = append(e.clients, c)
	}
	status, err := e.status(ctx, measure.DialTimeout)
	if err != nil {
		e.Disconnect()
		return nil, fmt.Errorf("%s does not answer: %s; check that an etcd is there, and whether it wants https:// and a certificate", other.At, plain(err))
	}
	e.Version = status.Version
	return e, nil
}

// startOwn starts plinth's endpoint on a database of its own. It has started when it has answered.
func (r *run) startOwn(ctx context.Context, dsn string) (*endpoint, error) {
	own, err := measure.StartOwn(ctx, append(slices.Clone(r.Command), "--listen-client-urls", "http://127.0.0.1:0"), r.Temporary, dsn)
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	e, err := r.dial(ctx, measure.Other{Name: own.Name, At: own.URL})
	if err != nil {
		return nil, errors.Join(err, own.Stop(ctx))
	}
	own.Took += time.Since(begun)
	e.Server.Own, e.Endpoint.Own, e.PIDs = own, true, append([]int{own.PID()}, e.PIDs...)
	return e, nil
}

// reach says why nobody can be reached at an address. A client of gRPC tries again, and says less.
func reach(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	network, at := "tcp", u.Host
	if strings.HasPrefix(u.Scheme, "unix") {
		network, at = "unix", u.Host+u.Path
	}
	conn, err := (&net.Dialer{Timeout: measure.DialTimeout}).DialContext(ctx, network, at)
	if err != nil {
		return err
	}
	return conn.Close()
}

// plain returns what an error of gRPC says.
func plain(err error) string {
	if s, ok := status.FromError(err); ok && !errors.Is(err, context.DeadlineExceeded) {
		return s.Message()
	}
	return measure.Plain(err)
}

func (e *endpoint) status(ctx context.Context, most time.Duration) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return e.clients[0].Status(ctx, e.clients[0].Endpoints()[0])
}

// Disconnect implements measure.Endpoint.
func (e *endpoint) Disconnect() {
	for _, c := range e.clients {
		_ = c.Close() // whatever it says, the connection is gone
	}
}

// Clean deletes all keys of the run, as far as the endpoint lets it.
func (e *endpoint) Clean(ctx context.Context) error {
	if _, err := e.clients[0].KV.Delete(ctx, e.prefix, clientv3.WithPrefix()); err == nil {
		return nil
	}
	for ctx.Err() == nil { // kine takes no other deletes than kube-apiserver's
		page, err := e.clients[0].Kubernetes.List(ctx, e.prefix, kubernetes.ListOptions{Limit: 1000})
		if err != nil || len(page.Kvs) == 0 {
			return nil
		}
		_, err = measure.Each(ctx, measure.Concurrent, len(page.Kvs), func(ctx context.Context, i int) error {
			return e.delete(ctx, i, string(page.Kvs[i].Key), page.Kvs[i].ModRevision)
		})
		if err != nil {
			return nil
		}
	}
	return nil
}

// client returns the connection of a worker.
func (e *endpoint) client(worker int) *kubernetes.Client { return e.clients[worker%len(e.clients)] }

// create puts a key that is not there, as kube-apiserver does.
func (e *endpoint) create(ctx context.Context, worker int, key string, value []byte) (revision int64, err error) {
	return e.put(ctx, worker, key, value, 0)
}

// put replaces the key of that revision, as kube-apiserver does.
func (e *endpoint) put(ctx context.Context, worker int, key string, value []byte, expected int64) (revision int64, err error) {
	got, err := e.client(worker).Kubernetes.OptimisticPut(ctx, key, value, expected, kubernetes.PutOptions{GetOnFailure: expected != 0})
	if err == nil && !got.Succeeded {
		err = fmt.Errorf("%s is not at revision %d", key, expected)
	}
	return got.Revision, err
}

func (e *endpoint) delete(ctx context.Context, worker int, key string, expected int64) error {
	got, err := e.client(worker).Kubernetes.OptimisticDelete(ctx, key, expected, kubernetes.DeleteOptions{GetOnFailure: true})
	if err == nil && !got.Succeeded {
		err = fmt.Errorf("%s is not at revision %d", key, expected)
	}
	return err
}
