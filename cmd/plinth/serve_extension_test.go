package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
	"github.com/plinth-io/plinth/dialects/logtest"
)

// TestKubectlTop runs kubectl top, which asks an extension server for the metrics of nodes.
func TestKubectlTop(t *testing.T) {
	path, err := kubectltest.Path()
	must(t, err)
	measures := httptest.NewTLSServer(http.HandlerFunc(serveMetrics))
	defer measures.Close()
	at, err := url.Parse(measures.URL)
	must(t, err)
	dir := t.TempDir()
	config := serveFor(t, filepath.Join(dir, "data"), logtest.SQLite(t)).kubeconfig()
	objects := filepath.Join(dir, "objects.yaml")
	must(t, os.WriteFile(objects, fmt.Appendf(nil, metricsObjects, at.Port()), 0o600))
	run := func(args ...string) (string, error) {
		cmd := exec.Command(path, append([]string{"--kubeconfig", config, "--cache-dir", dir}, args...)...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("apply", "-f", objects)
	if err != nil {
		t.Fatal(out)
	}
	if out, err := run("wait", "--for=condition=Available", "apiservice/v1beta1.metrics.k8s.io", "--timeout=60s"); err != nil {
		t.Fatal(out)
	}
	soon(t, "kubectl top shows the nodes", func() bool {
		out, err = run("top", "nodes")
		return err == nil
	})
	for _, want := range []string{"NAME", "CPU(cores)", "big", "1500m", "2048Mi"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in:\n%s", want, out)
		}
	}
	if out, err := run("get", "nodes.metrics.k8s.io", "-o", "name"); err != nil || strings.TrimSpace(out) != "nodemetrics.metrics.k8s.io/big" {
		t.Errorf("get nodes.metrics.k8s.io: %v: %s", err, out)
	}
}

func serveMetrics(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	const node = `{"kind":"NodeMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":{"name":"big"},
		"timestamp":"2025-01-01T00:00:00Z","window":"10s","usage":{"cpu":"1500m","memory":"2048Mi"}}`
	switch strings.TrimPrefix(r.URL.Path, "/apis/metrics.k8s.io/v1beta1") {
	case "":
		fmt.Fprint(w, `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"metrics.k8s.io/v1beta1","resources":[
			{"name":"nodes","singularName":"","namespaced":false,"kind":"NodeMetrics","verbs":["get","list"]}]}`)
	case "/nodes":
		fmt.Fprint(w, `{"kind":"NodeMetricsList","apiVersion":"metrics.k8s.io/v1beta1","metadata":{},"items":[`+node+`]}`)
	default:
		http.NotFound(w, r)
	}
}

const metricsObjects = `
apiVersion: v1
kind: Node
metadata: {name: big}
---
apiVersion: v1
kind: Service
metadata: {name: metrics, namespace: kube-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.k8s.io}
spec:
  group: metrics.k8s.io
  version: v1beta1
  groupPriorityMinimum: 100
  versionPriority: 100
  insecureSkipTLSVerify: true
  service: {namespace: kube-system, name: metrics, port: %s}
`
