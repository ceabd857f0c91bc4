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

// connections is the number of connections that the load is spread over. kube-apiserver has one for
// each resource.
const connections = 8

// dialTimeout is how long an endpoint that runs already may take to answer.
const dialTimeout = 10 * time.Second

// TLS are files as etcdctl has flags for.
type TLS struct{ Cert, Key, CA string }

// config returns nil if there are no files.
func (t TLS) config() (*tls.Config, error) {
	if t == (TLS{}) {
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
	figures.Endpoint
	clients []*kubernetes.Client
	servers []corev1client.CoreV1Interface // of a kube-apiserver, which has no clients
	pids    []int
	own     *own // nil: was running already
}

// dial connects to an endpoint.
func dial(ctx context.Context, other Other, files TLS) (*endpoint, error) {
	e := &endpoint{Endpoint: figures.Endpoint{Name: other.Name}}
	config, err := files.config()
	if err != nil {
		return nil, fmt.Errorf("read the files for TLS: %w", err)
	}
	if !strings.HasPrefix(other.URL, "https://") && !strings.HasPrefix(other.URL, "unixs://") {
		config = nil
	}
	if err := reach(ctx, other.URL); err != nil {
		return nil, fmt.Errorf("%s: %s is not reached: %w; start it, or write the URL of one that runs", other.Name, other.URL, err)
	}
	for range connections {
		c, err := kubernetes.New(clientv3.Config{
			Endpoints: []string{other.URL}, TLS: config, DialTimeout: dialTimeout, Logger: zap.NewNop(),
			DialKeepAliveTime: 30 * time.Second, DialKeepAliveTimeout: 10 * time.Second, // as kube-apiserver
		})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", other.Name, err), e.close(ctx))
		}
		e.clients = append(e.clients, c)
	}
	status, err := e.status(ctx, dialTimeout)
	if err != nil {
		e.closeClients()
		return nil, fmt.Errorf("%s: %s does not answer: %s; check that an etcd is there, and whether it wants https:// and a certificate", other.Name, other.URL, plain(err))
	}
	e.Version = status.Version
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
	conn, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, network, at)
	if err != nil {
		return err
	}
	return conn.Close()
}

// plain returns what an error of gRPC says.
func plain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	if s, ok := status.FromError(err); ok {
		return s.Message()
	}
	return err.Error()
}

func (e *endpoint) status(ctx context.Context, most time.Duration) (*clientv3.StatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return e.clients[0].Status(ctx, e.clients[0].Endpoints()[0])
}

func (e *endpoint) closeClients() {
	for _, c := range e.clients {
		_ = c.Close() // whatever it says, the connection is gone
	}
	e.clients = nil
}

// close ends the endpoint too if it is plinth's own.
func (e *endpoint) close(ctx context.Context) error {
	e.closeClients()
	if e.own == nil {
		return nil
	}
	return e.own.stop(ctx)
}

// clean deletes all keys below prefix, as far as the endpoint lets it.
func (e *endpoint) clean(ctx context.Context, prefix string) {
	if len(e.clients) == 0 {
		return
	}
	if _, err := e.clients[0].KV.Delete(ctx, prefix, clientv3.WithPrefix()); err == nil {
		return
	}
	for ctx.Err() == nil { // kine takes no other deletes than kube-apiserver's
		page, err := e.clients[0].Kubernetes.List(ctx, prefix, kubernetes.ListOptions{Limit: 1000})
		if err != nil || len(page.Kvs) == 0 {
			return
		}
		_, err = measure.Each(ctx, concurrent, len(page.Kvs), func(ctx context.Context, i int) error {
			return e.delete(ctx, i, string(page.Kvs[i].Key), page.Kvs[i].ModRevision)
		})
		if err != nil {
			return
		}
	}
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
