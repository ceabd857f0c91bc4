package apibench

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/apiload"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// server is what a run has of one server.
type server struct {
	measure.Server
	apiload.Clients
	namespace string // path
	disk      string // directory of the database, if it is known
}

func (s *server) configMaps() string { return s.namespace + "/configmaps" }

// configOf reads where a server is: a URL or a kubeconfig.
func (r *run) configOf(at string) (*clientrest.Config, error) {
	if !strings.Contains(at, "://") {
		return clientcmd.BuildConfigFromFlags("", at)
	}
	return &clientrest.Config{Host: at, TLSClientConfig: clientrest.TLSClientConfig{CertFile: r.TLS.Cert, KeyFile: r.TLS.Key, CAFile: r.TLS.CA}}, nil
}

func (r *run) dial(ctx context.Context, other measure.Other) (*server, error) {
	config, err := r.configOf(other.At)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	s := &server{Server: measure.Server{Endpoint: figures.Endpoint{Name: other.Name}, PIDs: r.PIDs[other.Name]}, disk: r.disks[other.Name]}
	if err := s.connect(ctx, config); err != nil {
		return nil, fmt.Errorf("%s is not reached: %w; start it, or write the address of one that runs", config.Host, err)
	}
	return s, nil
}

func (r *run) startOwn(ctx context.Context, dsn string) (*server, error) {
	command := r.Command
	if NeedsCluster(r.Only) {
		command = append(slices.Clone(command), "--cluster")
	}
	own, err := apiload.StartOwn(ctx, command, r.Temporary, dsn)
	if err != nil {
		return nil, err
	}
	s, err := r.dial(ctx, measure.Other{Name: own.Name, At: own.Kubeconfig})
	if err != nil {
		return nil, errors.Join(err, own.Stop(ctx))
	}
	s.Server.Own, s.Endpoint.Own, s.PIDs = own, true, append([]int{own.PID()}, s.PIDs...)
	s.disk = cmp.Or(own.Files, s.disk)
	return s, nil
}

func (s *server) connect(ctx context.Context, config *clientrest.Config) (err error) {
	ctx, cancel := context.WithTimeout(ctx, measure.DialTimeout)
	defer cancel()
	if s.Clients, err = apiload.Dial(ctx, config, measure.Connections, "/version"); err != nil {
		return err
	}
	var version bytes.Buffer
	_, err = s.Clients[0].Do(ctx, http.MethodGet, "/version", nil, &version)
	var v struct{ GitVersion string }
	if err == nil && json.Unmarshal(version.Bytes(), &v) == nil {
		s.Version = v.GitVersion
	}
	return err
}

// Disconnect implements measure.Endpoint.
func (s *server) Disconnect() { s.Close() }

const namespaces = "/api/v1/namespaces"

// prepare makes the namespace, and the account of its pods, which a controller may have made already.
func (s *server) prepare(ctx context.Context, name string) error {
	body := fmt.Appendf(nil, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q}}`, name)
	if _, err := s.Clients[0].Do(ctx, http.MethodPost, namespaces, body, nil); err != nil {
		return err
	}
	s.namespace = namespaces + "/" + name
	account := []byte(`{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"default"},"automountServiceAccountToken":false}`)
	if _, err := s.Clients[0].Do(ctx, http.MethodPost, s.namespace+"/serviceaccounts", account, nil); err != nil && apiload.Code(err) != http.StatusConflict {
		return err
	}
	return nil
}

// Clean deletes the namespace. There may be no controller that would delete what is in it.
func (s *server) Clean(ctx context.Context) error {
	if s.namespace == "" {
		return nil
	}
	at, c := s.namespace, s.Clients[0]
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
	if slices.Contains(codes, apiload.Code(err)) {
		return nil
	}
	return err
}

func (s *server) footprint(context.Context) (f measure.Footprint, err error) {
	f = measure.FootprintOf(s.PIDs)
	if f.Sized = s.disk != ""; f.Sized {
		f.Size, err = measure.DiskUse(s.disk)
	}
	return f, err
}
