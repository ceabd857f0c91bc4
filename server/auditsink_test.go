package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/plinth-io/plinth/server/audit"
)

func TestAuditErrors(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const policy = "testdata/audit/policy.yaml"
	for _, test := range []struct {
		name string
		set  func(o *audit.Options)
		has  string
	}{
		{"no such policy", func(o *audit.Options) { o.PolicyFile = "nope.yaml" }, "no such file"},
		{"no rules", func(o *audit.Options) {
			o.PolicyFile = file("empty.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\n")
		}, "0 rules"},
		{"unknown level", func(o *audit.Options) {
			o.PolicyFile = file("level.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Loud}]\n")
		}, `"Loud"`},
		{"another version", func(o *audit.Options) {
			o.PolicyFile = file("version.yaml", "apiVersion: audit.k8s.io/v9\nkind: Policy\nrules: [{level: None}]\n")
		}, "audit.k8s.io/v9"},
		{"below a file", func(o *audit.Options) {
			o.PolicyFile, o.LogOptions.Path = policy, filepath.Join(file("f", ""), "audit.log")
		}, "not a directory"},
		{"a directory", func(o *audit.Options) { o.PolicyFile, o.LogOptions.Path = policy, dir }, "is a directory"},
		{"format", func(o *audit.Options) { o.PolicyFile, o.LogOptions.Path, o.LogOptions.Format = policy, "x", "xml" }, "allowed formats"},
		{"mode", func(o *audit.Options) {
			o.PolicyFile, o.LogOptions.Path, o.LogOptions.BatchOptions.Mode = policy, "x", "lazy"
		}, "allowed modes"},
		{"webhook", func(o *audit.Options) { o.PolicyFile, o.WebhookOptions.ConfigFile = policy, "nope.kubeconfig" }, "no such file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Config{Audit: audit.NewOptions()}
			test.set(c.Audit)
			err := New(c).Open(t.Context())
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), test.has) {
				t.Errorf("error %v, want %s", err, test.has)
			}
		})
	}
}

// A log without a policy logs nothing, and the operator is told.
func TestAuditWithoutPolicy(t *testing.T) {
	var told strings.Builder
	c, log := audited(t)
	c.Audit.PolicyFile = ""
	c.Logf = func(f string, a ...any) { fmt.Fprintf(&told, f+"\n", a...) }
	s := start(t, c)
	if code, _, _ := do(t, admin(t, s), "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("code %d", code)
	}
	must(t, s.Close())
	if events := readEvents(t, log); len(events) > 0 || !strings.Contains(told.String(), "nothing is logged") {
		t.Errorf("events %v, told %s", events, &told)
	}
}

// auditSink is a webhook that takes events.
type auditSink struct {
	mu     sync.Mutex
	events []map[string]any // guarded by mu
}

func (a *auditSink) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	var list struct{ Items []map[string]any }
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.events = append(a.events, list.Items...)
}

// What waits to be sent to a webhook is sent before a stop is over.
func TestAuditWebhook(t *testing.T) {
	sink := &auditSink{}
	there := httptest.NewServer(sink)
	defer there.Close()
	c, _ := audited(t)
	c.Audit.LogOptions.Path = ""
	c.Audit.WebhookOptions.ConfigFile = webhookConfig(t, there.URL)
	c.Audit.WebhookOptions.BatchOptions.BatchConfig.MaxBatchWait = time.Hour
	s := start(t, c)
	if code := asked(t, admin(t, s), "one", "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("code %d", code)
	}
	must(t, s.Close())
	sink.mu.Lock()
	defer sink.mu.Unlock()
	var mine []map[string]any
	for _, e := range sink.events {
		if e["auditID"] == "one" {
			mine = append(mine, e)
		}
	}
	if d := diff.Diff([]string{"RequestReceived", "ResponseComplete 200"}, essence(mine)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// An event that cannot be stored refuses its request in the strict mode, and in no other.
func TestAuditFullDisk(t *testing.T) {
	for mode, want := range map[string]int{"blocking": 200, "blocking-strict": 500} {
		t.Run(mode, func(t *testing.T) {
			c, _ := audited(t)
			c.Audit.LogOptions.Path = "/dev/full"
			c.Audit.LogOptions.BatchOptions.Mode = mode
			s := start(t, c)
			if code := asked(t, admin(t, s), "one", "GET", s.URL()+"/version", ""); code != want {
				t.Errorf("code %d, want %d", code, want)
			}
			if _, _, text := do(t, admin(t, s), "GET", s.URL()+"/metrics", ""); mode == "blocking" && !strings.Contains(text, `apiserver_audit_error_total{plugin="log"}`) {
				t.Error("nothing in /metrics about what was lost")
			}
		})
	}
}

// A stop does not wait for ever for a webhook that is away, and says what was lost.
func TestAuditWebhookAway(t *testing.T) {
	c, _ := audited(t)
	c.Audit.LogOptions.Path = ""
	c.Audit.WebhookOptions.ConfigFile = webhookConfig(t, "http://127.0.0.1:1")
	c.ShutdownTimeout, c.Linger, c.Controllers = time.Second, time.Millisecond, []string{}
	s := New(c)
	must(t, s.Open(t.Context()))
	if code := asked(t, admin(t, s), "one", "GET", s.URL()+"/version", ""); code != 200 {
		t.Errorf("code %d", code)
	}
	if err := s.Close(); err == nil || !strings.Contains(err.Error(), "audit events") {
		t.Errorf("error %v", err)
	}
}

// webhookConfig is the file that names where events are sent.
func webhookConfig(t *testing.T, url string) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["a"] = &clientcmdapi.Cluster{Server: url}
	config.Contexts["a"] = &clientcmdapi.Context{Cluster: "a"}
	config.CurrentContext = "a"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*config, file))
	return file
}
