package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/apimachinery/pkg/version"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/server/cluster"
	serverstatus "github.com/plinth-io/plinth/server/status"
)

// errNotReady is the error for a server that answers and is not ready.
var errNotReady = errors.New("not ready")

// statusClient sends requests to one server.
type statusClient struct {
	client      *http.Client
	server      *url.URL
	certificate *x509.Certificate // that the kubeconfig has; nil: none
}

// askServer reads the version and the readiness, which everybody may read, and then the metrics.
func (q *statusQuery) askServer(ctx context.Context) (*status, error) {
	a, err := q.newClient()
	if err != nil {
		return nil, err
	}
	s := &status{Server: a.server.String()}
	text, code, err := a.get(ctx, "/version")
	if err != nil {
		return s.unreachable(a, err)
	}
	if code == http.StatusUnauthorized {
		return nil, a.unauthorized()
	}
	if err := s.takeVersion(text); err != nil {
		return nil, err
	}
	text, code, err = a.get(ctx, "/readyz?verbose")
	if err != nil {
		return s.unreachable(a, err)
	}
	s.takeReadiness(text, code)
	if text, code, err = a.get(ctx, cluster.StatusPath); err == nil && code == http.StatusOK {
		err = s.takeStatus(text)
	} else if err == nil && code == http.StatusNotFound { // an older release
		if text, code, err = a.get(ctx, "/metrics"); err == nil && code == http.StatusOK {
			err = s.takeMetrics(text)
		}
	}
	if err == nil && !*s.Ready {
		err = fmt.Errorf("%w: %s", errNotReady, strings.Join(s.Problems, "; "))
	}
	return s, err
}

func (q *statusQuery) newClient() (*statusClient, error) {
	config, err := q.clientConfig()
	if err != nil {
		return nil, err
	}
	client, err := clientrest.HTTPClientFor(config)
	if err != nil {
		return nil, usagef("kubeconfig: %v", err)
	}
	server, _, err := clientrest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, usagef("kubeconfig: %v", err)
	}
	return &statusClient{client, server, clientCertificate(config)}, nil
}

// get returns the body at path and the status code, whatever the code is.
func (a *statusClient) get(ctx context.Context, path string) (text []byte, code int, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(a.server.String(), "/")+path, nil)
	if err != nil {
		return nil, 0, err
	}
	response, err := a.client.Do(request)
	var detail *url.Error
	if errors.As(err, &detail) {
		err = detail.Err // url.Error repeats the address
	}
	if err != nil {
		return nil, 0, err
	}
	defer response.Body.Close()
	text, err = io.ReadAll(response.Body)
	return text, response.StatusCode, err
}

func (q *statusQuery) clientConfig() (*clientrest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(q.rules(), q.overrides()).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, noKubeconfig(q.named(), "start plinth serve in this directory first, or write --kubeconfig FILE, --data-dir DIRECTORY or --dsn DATABASE")
	}
	if err != nil {
		return nil, usagef("kubeconfig: %v", err)
	}
	return config, nil
}

// noKubeconfig says that the file that was named has nothing in it, or what to do if none was.
func noKubeconfig(named, advice string) error {
	if named != "" {
		return usagef("kubeconfig: %s names no cluster: it may be empty", named)
	}
	return usagef("there is no kubeconfig: %s", advice)
}

func (q *statusQuery) overrides() *clientcmd.ConfigOverrides {
	o := &clientcmd.ConfigOverrides{CurrentContext: q.context}
	o.ClusterInfo.Server = q.server
	return o
}

func (s *status) unreachable(a *statusClient, err error) (*status, error) {
	no := false
	s.Ready, s.Problems = &no, []string{"cannot be reached: " + oneLine(err)}
	return s, a.unreachable(err, "--kubeconfig or --context")
}

// takeVersion reads plinth's version, which is part of the Kubernetes version at /version.
func (s *status) takeVersion(text []byte) error {
	var info version.Info
	if err := json.Unmarshal(text, &info); err != nil {
		return fmt.Errorf("%s does not answer as a Kubernetes API: %w", s.Server, err)
	}
	kubernetes, plinth, found := strings.Cut(info.GitVersion, "+plinth-")
	if !found {
		return fmt.Errorf("%s is not a plinth: its version is %q", s.Server, info.GitVersion)
	}
	s.Kubernetes, s.Version, s.Commit = kubernetes, plinth, info.GitCommit
	return nil
}

// takeReadiness reads /readyz?verbose, which has a line for each check. Checks that fail begin
// with [-].
func (s *status) takeReadiness(text []byte, code int) {
	ready := code == http.StatusOK
	s.Ready = &ready
	for line := range strings.Lines(string(text)) {
		if problem, failed := strings.CutPrefix(strings.TrimSpace(line), "[-]"); failed {
			s.Problems = append(s.Problems, storageProblem(problem))
		}
	}
	s.Problems = slices.Compact(s.Problems)
	if !ready && len(s.Problems) == 0 {
		s.Problems = []string{http.StatusText(code)}
	}
}

// storageProblem names the storage by what it is: /readyz has two checks with kube-apiserver's names.
func storageProblem(problem string) string {
	for _, name := range []string{"etcd failed", "etcd-readiness failed"} {
		if reason, ok := strings.CutPrefix(problem, name); ok {
			return "storage failed" + reason
		}
	}
	return problem
}

// takeStatus reads what plinth tells of itself.
func (s *status) takeStatus(text []byte) error {
	var all serverstatus.Status
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("read the status: %w", err)
	}
	s.Time, s.Started, s.Certificates = &all.Time, &all.Started, all.Certificates
	s.Alarms, s.Replicas, s.Resources, s.Faults = all.Alarms, all.Replicas, all.Resources, all.Faults
	s.Watches, s.Writes, s.Reads, s.Backups = &all.Watches, &all.Writes, &all.Reads, all.Backups
	d := &all.Database
	s.Database = databaseStatus{
		Name: d.Name, ClusterID: d.ClusterID, Objects: &d.Objects, Revision: &d.Revision, Floor: &d.Floor,
		Usable: &d.Usable, CompactionBehind: &d.CompactionBehind,
	}
	if d.Size != nil {
		s.Database.Rows, s.Database.Dead, s.Database.Kept, s.Database.Bytes = &d.Rows, &d.Dead, &d.Kept, &d.Bytes
		if d.KeptBound > 0 {
			s.Database.KeptBytes, s.Database.KeptBound = d.KeptBytes, &d.KeptBound
		}
		if d.Free > 0 {
			s.Database.FreeBytes = &d.Free
		}
	}
	return nil
}

func (s *status) takeMetrics(text []byte) error {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("read metrics: %w", err)
	}
	number := func(name string) *int64 {
		if f := families[name]; f != nil && len(f.Metric) > 0 {
			n := int64(f.Metric[0].GetGauge().GetValue())
			return &n
		}
		return nil
	}
	d := &s.Database
	d.Rows, d.Revision, d.Floor = number("plinth_log_rows"), number("plinth_revision"), number("plinth_compacted_revision")
	d.Bytes, d.FreeBytes = number("plinth_database_bytes"), number("plinth_database_free_bytes")
	if f := families["apiserver_storage_objects"]; f != nil {
		var objects int64
		for _, m := range f.Metric {
			objects += int64(m.GetGauge().GetValue())
		}
		d.Objects = &objects
	}
	if f := families["plinth_info"]; f != nil {
		d.Name = label(f.Metric[0], "database")
	}
	if f := families["plinth_certificate_expiration_seconds"]; f != nil {
		s.Certificates = map[string]time.Time{}
		for _, m := range f.Metric {
			s.Certificates[label(m, "name")] = time.Unix(int64(m.GetGauge().GetValue()), 0).UTC()
		}
	}
	return nil
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
