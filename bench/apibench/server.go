package apibench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// connections is the number of connections that the load is spread over. Each stands for one client
// program.
const connections = 8

// dialTimeout is how long a server that runs already may take to answer.
const dialTimeout = 10 * time.Second

// server is what a run has of one server.
type server struct {
	figures.Endpoint
	clients   []*apiload.Client
	namespace string // path
	pids      []int
	disk      string       // directory of the database, if it is known
	own       *apiload.Own // nil: was running already
}

func (s *server) client(worker int) *apiload.Client { return s.clients[worker%len(s.clients)] }

func (s *server) configMaps() string { return s.namespace + "/configmaps" }

// configOf reads where a server is: a URL or a kubeconfig.
func (r *run) configOf(at string) (*clientrest.Config, error) {
	if !strings.Contains(at, "://") {
		return clientcmd.BuildConfigFromFlags("", at)
	}
	return &clientrest.Config{Host: at, TLSClientConfig: clientrest.TLSClientConfig{CertFile: r.TLS.Cert, KeyFile: r.TLS.Key, CAFile: r.TLS.CA}}, nil
}

func (r *run) dial(ctx context.Context, other Other) (*server, error) {
	config, err := r.configOf(other.At)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	s := &server{Endpoint: figures.Endpoint{Name: other.Name}, pids: r.PIDs[other.Name], disk: r.Disks[other.Name]}
	if err := s.connect(ctx, config); err != nil {
		return nil, fmt.Errorf("%s is not reached: %w; start it, or write the address of one that runs", config.Host, err)
	}
	return s, nil
}

func (r *run) startOwn(ctx context.Context, dsn string) (*server, error) {
	own, err := apiload.StartOwn(ctx, r.Command, r.dir, dsn)
	if err != nil {
		return nil, err
	}
	s := &server{Endpoint: figures.Endpoint{Name: own.Name, Own: true}, own: own, pids: append([]int{own.PID()}, r.PIDs[own.Name]...), disk: own.Files}
	if s.disk == "" {
		s.disk = r.Disks[own.Name]
	}
	config, err := own.Config()
	if err == nil {
		err = s.connect(ctx, config)
	}
	if err != nil {
		return nil, errors.Join(err, own.Stop(ctx))
	}
	return s, nil
}

func (s *server) connect(ctx context.Context, config *clientrest.Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if s.clients, err = apiload.Dial(ctx, config, connections, "/version"); err != nil {
		return err
	}
	var version bytes.Buffer
	_, err = s.clients[0].Do(ctx, http.MethodGet, "/version", nil, &version)
	var v struct{ GitVersion string }
	if err == nil && json.Unmarshal(version.Bytes(), &v) == nil {
		s.Version = v.GitVersion
	}
	return err
}

const namespaces = "/api/v1/namespaces"

// prepare makes the namespace, and the account of its pods, which a controller may have made already.
func (s *server) prepare(ctx context.Context, name string) error {
	body := fmt.Appendf(nil, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q}}`, name)
	if _, err := s.clients[0].Do(ctx, http.MethodPost, namespaces, body, nil); err != nil {
		return err
	}
	s.namespace = namespaces + "/" + name
	account := []byte(`{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default"},"automountServiceAccountToken":false}`)
	if _, err := s.clients[0].Do(ctx, http.MethodPost, s.namespace+"/serviceaccounts", account, nil); err != nil && codeOf(err) != http.StatusConflict {
		return err
	}
	return nil
}

// codeOf returns the status of an answer that was an error, 0 if there was no answer.
func codeOf(err error) int {
	if failed := new(apiload.Error); errors.As(err, &failed) {
		return failed.Code
	}
	return 0
}

// clean deletes the namespace. There may be no controller that would delete what is in it.
func (s *server) clean(ctx context.Context, name string) error {
	if s.namespace == "" {
		return nil
	}
	at, c := namespaces+"/"+name, s.clients[0]
	for _, path := range []string{"/pods", "/configmaps", "/serviceaccounts"} {
		now := []byte(`{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0}`)
		if _, err := c.Do(ctx, http.MethodDelete, at+path, now, nil); err != nil {
			return err
		}
	}
	if _, err := c.Do(ctx, http.MethodDelete, at, nil, nil); err != nil {
		return err
	}
	var left bytes.Buffer
	if _, err := c.Do(ctx, http.MethodGet, at, nil, &left); err != nil {
		return unless(err, http.StatusNotFound)
	}
	var namespace map[string]any
	if err := json.Unmarshal(left.Bytes(), &namespace); err != nil {
		return err
	}
	namespace["spec"] = map[string]any{}
	body, err := json.Marshal(namespace)
	if err != nil {
		return err
	}
	_, err = c.Do(ctx, http.MethodPut, at+"/finalize", body, nil)
	return unless(err, http.StatusNotFound, http.StatusConflict) // a controller was faster
}

// unless returns err unless it is an answer with one of the codes.
func unless(err error, codes ...int) error {
	for _, code := range codes {
		if codeOf(err) == code {
			return nil
		}
	}
	return err
}

func (s *server) footprint() (f measure.Footprint, err error) {
	f = measure.FootprintOf(s.pids)
	if f.Sized = s.disk != ""; f.Sized {
		f.Size, err = measure.DiskUse(s.disk)
	}
	return f, err
}

// memory is that of the server itself.
func (s *server) memory(context.Context) ([]figures.Sample, error) {
	spent, known := measure.Spend(s.pids[:min(len(s.pids), 1)])
	return []figures.Sample{{Value: figures.MiB(spent.RSS), None: !known}}, nil
}
