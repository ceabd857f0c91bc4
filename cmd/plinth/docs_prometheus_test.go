package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/server/alarms"
)

const (
	rulesFile     = "docs/prometheus/plinth.rules.yaml"
	dashboardFile = "docs/grafana/plinth.json"
)

// TestPrometheusFiles has Prometheus' own packages check the alerts and each expression of the dashboard,
// and looks up all metrics that they name.
func TestPrometheusFiles(t *testing.T) {
	t.Parallel()
	names, err := promtool(t, []string{filepath.Join(repository, rulesFile)}, expressionsOf(t))
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 30 {
		t.Fatalf("only %d metrics in rules and dashboard: %v", len(names), names)
	}
	p := serveFor(t, filepath.Join(t.TempDir(), "data"), logtest.SQLite(t))
	text, err := kubernetes.NewForConfigOrDie(p.config(t)).RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	exported := found(text, `(?m)^# TYPE (\w+) (\w+)$`)
	for _, name := range names {
		family := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
		if name != "up" && exported[name] == "" && exported[family] != "histogram" {
			t.Errorf("rules or dashboard name %s, which plinth does not export", name)
		}
	}
}

// TestPrometheusCheck has the checker refuse what is wrong.
func TestPrometheusCheck(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "rules.yaml")
	must(t, os.WriteFile(file, []byte("groups:\n- name: a\n  rules:\n  - alert: A\n    exp: up == 0\n"), 0o600))
	if _, err := promtool(t, []string{file}, nil); err == nil || !strings.Contains(err.Error(), "exp") {
		t.Errorf("a rule without an expression: %v", err)
	}
	if _, err := promtool(t, nil, []string{"rate(up)"}); err == nil || !strings.Contains(err.Error(), "rate") {
		t.Errorf("a rate of an instant: %v", err)
	}
}

// builtPromtool is Prometheus' checker, in the directory that goes when all tests have ended.
var builtPromtool = sync.OnceValues(func() (string, error) {
	plinth, err := built()
	if err != nil {
		return "", err
	}
	program := filepath.Join(filepath.Dir(plinth), "promtool")
	return program, buildModule(filepath.Join("testdata", "promtool"), program, "build")
})

// promtool returns the names of the metrics in files with rules and in expressions.
func promtool(t *testing.T, files, expressions []string) (names []string, err error) {
	t.Helper()
	program, err := builtPromtool()
	must(t, err)
	check := exec.Command(program, files...)
	check.Stdin = strings.NewReader(strings.Join(expressions, "\n"))
	var stderr bytes.Buffer
	check.Stderr = &stderr
	out, err := check.Output()
	if err != nil {
		return nil, &refusedRules{stderr.String()}
	}
	return strings.Fields(string(out)), nil
}

// refusedRules is what the checker says.
type refusedRules struct{ text string }

func (r *refusedRules) Error() string { return r.text }

// expressionsOf are those of the dashboard, with values in place of its variables.
func expressionsOf(t *testing.T) (expressions []string) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	must(t, json.Unmarshal([]byte(readDocument(t, dashboardFile)), &dashboard))
	values := strings.NewReplacer("$__rate_interval", "5m", "$job", "plinth", "$instance", ".*")
	for _, p := range dashboard.Panels {
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("the panel %q shows nothing", p.Title)
		}
		for _, target := range p.Targets {
			expressions = append(expressions, values.Replace(target.Expr))
		}
	}
	return expressions
}

// TestDocumentedAlarms compares the table of alarms in docs/operations.md, and those that the rules name,
// with those that there are.
func TestDocumentedAlarms(t *testing.T) {
	t.Parallel()
	documented := found([]byte(readDocument(t, "docs/operations.md")), "(?m)^\\| `([a-z_]+)` \\| `(\\w+)` \\|")
	known := map[string]bool{}
	for _, a := range alarms.All {
		known[a.Name] = true
		if documented[a.Name] != a.Reason {
			t.Errorf("docs/operations.md has %q for the alarm %s, whose events are called %s", documented[a.Name], a.Name, a.Reason)
		}
	}
	for name := range documented {
		if !known[name] {
			t.Errorf("docs/operations.md has an alarm %s", name)
		}
	}
	var rules struct {
		Groups []struct{ Rules []struct{ Expr string } }
	}
	must(t, yaml.Unmarshal([]byte(readDocument(t, rulesFile)), &rules))
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			for _, m := range regexp.MustCompile(`alarm[!=]~?"([^"]*)"`).FindAllStringSubmatch(r.Expr, -1) {
				for name := range strings.SplitSeq(m[1], "|") {
					if !known[name] {
						t.Errorf("a rule names the alarm %s", name)
					}
				}
			}
		}
	}
}
