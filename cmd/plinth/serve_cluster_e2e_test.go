package main

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
	"github.com/plinth-io/plinth/dialects/logtest/spent"
	"github.com/plinth-io/plinth/server/kind"
)

// e2eVariable says how many of upstream's tests run at a time. Without it TestClusterE2E is skipped: make test-e2e sets it.
const e2eVariable = "PLINTH_TEST_E2E"

// e2eChosen are the groups of upstream's conformance tests that concern what plinth does itself, with the components
// inside: kubelets, networks and disks are others' work.
var e2eChosen = regexp.MustCompile(`\[sig-(api-machinery|apps|auth|instrumentation|scheduling|architecture)\]|` +
	`\[sig-node\] (Lease|RuntimeClass|PodTemplates|ConfigMap should (fail|update|run)|Secrets should (fail|patch)|Pods (Extended|should (delete a collection|patch a pod status)))|` +
	`\[sig-network\] (EndpointSlice|Endpoints|Ingress|IngressClass|Service endpoints|ServiceCIDR|Services should (find|complete|delete|provide))`)

// e2eLeft are those of them that are left out, because simulated nodes run no containers: each pod is ready at once, or,
// if it is a Job's, over.
var e2eLeft = []struct {
	why   string
	names *regexp.Regexp
}{
	{"a webhook or an API server is in a pod", regexp.MustCompile(`AdmissionWebhook|CustomResourceConversionWebhook|CustomResourceFieldSelectors|Aggregator`)},
	{"pods have to answer, or run what exec tells them", regexp.MustCompile(`serve a basic image|OIDC discovery|multiple (ports|endpoint IPs) specified|mTLS|SPIFFE`)},
	{"a kubelet has to mount a volume, or refuse to", regexp.MustCompile(`mount|[Pp]rojected|ClusterTrustBundleProjection|MaxExpirationSeconds`)},
	{"a kubelet has to say which generation of a pod it has seen", regexp.MustCompile(`pod generation should start|issue 500 podspec`)},
	{"pods have to fail, or not to be ready", regexp.MustCompile(`should perform (rolling|canary)|Scaling should happen in predictable|Burst scaling|recreate evicted statefulset|proportional scaling|rollback without unnecessary|` +
		`sometimes fail|FailIndex|exit code|backoffLimitPerIndex|maxFailedIndexes`)},
	{"pods of Jobs have to go on", regexp.MustCompile(`[sS]uccessPolicy|Job should (adopt|delete a job|allow to use|run a job|manage the lifecycle|apply changes)|CronJob should (not|replace|schedule)`)},
}

// e2eLeast is how many tests of the release are left then: fewer mean that one was renamed.
const e2eLeast = 164

// TestClusterE2E runs upstream's end-to-end tests of the release on a plinth that is a whole control plane, with simulated nodes.
func TestClusterE2E(t *testing.T) {
	parallel := os.Getenv(e2eVariable)
	if parallel == "" {
		t.Skipf("%s is not set; make test-e2e sets it", e2eVariable)
	}
	if makeComponents == nil {
		t.Fatal("the test is built without the tag cluster; make test-e2e sets it")
	}
	dir := t.TempDir()
	must(t, buildE2E(dir))
	kubectl, err := kubectltest.Path()
	must(t, err)
	p := serveFor(t, filepath.Join(dir, "cluster"), "", "--cluster", "--simulate-nodes=5")
	left := []string{}
	for _, l := range e2eLeft {
		left = append(left, l.names.String())
	}
	report := filepath.Join(dir, "report.json")
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "ginkgo"), "--procs="+parallel, "--timeout=50m", "--no-color", "--silence-skips",
		"--label-filter=Conformance && !Disruptive", "--focus="+e2eChosen.String(), "--skip="+strings.Join(left, "|"), "--output-dir="+dir, "--json-report=report.json",
		filepath.Join(dir, "e2e.test"), "--",
		"--kubeconfig="+p.kubeconfig(), "--provider=skeleton", "--kubectl-path="+kubectl, "--e2e-output-dir="+dir, "--dump-logs-on-failure=false", "--disable-log-dump")
	cmd.Dir = dir
	out, failed := cmd.CombinedOutput()
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("no test has run: %v: %.20000s", failed, out)
	}
	r, err := readE2E(text)
	must(t, err)
	for _, group := range slices.Sorted(maps.Keys(r.passed)) {
		t.Logf("%s: %d passed", group, r.passed[group])
	}
	t.Logf("%d of %d passed, in %v", r.total-len(r.failed), r.total, r.took.Round(time.Second))
	for name, why := range r.failed {
		t.Errorf("%s: %s", name, why)
	}
	if r.total < e2eLeast || failed != nil && len(r.failed) == 0 {
		t.Errorf("only %d tests have run: %v: %.20000s", r.total, failed, out)
	}
}

// buildE2E builds upstream's tests, and the program that runs several at a time, into dir.
func buildE2E(dir string) error {
	if err := buildPrograms("cluster", kind.Release, dir+"/", "github.com/onsi/ginkgo/v2/ginkgo"); err != nil {
		return err
	}
	defer spent.On("building upstream's end-to-end tests", time.Now())
	return goIn(filepath.Join("testdata", "cluster"),
		"test", "-vet=off", "-c", "-ldflags=-s -w -X k8s.io/component-base/version.gitVersion="+kind.Release, "-o", filepath.Join(dir, "e2e.test"), "./e2e")
}

// e2eResult is what came of upstream's tests.
type e2eResult struct {
	total  int
	passed map[string]int    // by group, such as sig-apps
	failed map[string]string // why, by name
	took   time.Duration
}

// readE2E reads the report of ginkgo. Steps before and after all tests count only when they fail.
func readE2E(text []byte) (*e2eResult, error) {
	var suites []struct {
		RunTime time.Duration
		Specs   []struct {
			Containers         []string `json:"ContainerHierarchyTexts"`
			Leaf               string   `json:"LeafNodeText"`
			LeafType           string   `json:"LeafNodeType"`
			State              string
			Failure            struct{ Message string }
			AdditionalFailures []struct{ Failure struct{ Message string } }
		} `json:"SpecReports"`
	}
	if err := json.Unmarshal(text, &suites); err != nil {
		return nil, err
	}
	r := &e2eResult{passed: map[string]int{}, failed: map[string]string{}}
	for _, s := range suites {
		r.took += s.RunTime
		for _, spec := range s.Specs {
			name := strings.Join(append(spec.Containers, spec.Leaf), " ")
			group, _, _ := strings.Cut(strings.TrimPrefix(name, "["), "]")
			switch spec.State {
			case "passed":
				if spec.LeafType == "It" {
					r.total++
					r.passed[group]++
				}
			case "skipped", "pending":
				if spec.LeafType == "It" && spec.Failure.Message != "" { // the test itself skips what it needs a cluster for
					r.total++
					r.failed[name] = "skipped: " + spec.Failure.Message
				}
			default:
				r.total++
				r.failed[name] = spec.State + ": " + spec.Failure.Message
			}
		}
	}
	return r, nil
}
