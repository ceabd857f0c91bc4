package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/server/kind"
)

// TestBenchAgainst measures the program, beside another one that runs
// already, in which nothing may be left behind.
func TestBenchAgainst(t *testing.T) {
	other := startPlinth(t, nil, "serve", "--listen", "127.0.0.1:0", "--controllers=namespace")
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := runBuilt(t,
		"bench", "--quick", "--dsn", "sqlite://plinth.db", "--churn", "1s", "--against", "other="+other.kubeconfig,
		"--pid", fmt.Sprint("other=", other.cmd.Process.Pid), "--disk", "other="+filepath.Dir(other.kubeconfig), "--out", out,
	)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	t.Logf("\n%s", stdout)
	if want := "Measuring plinth on sqlite, other. Charts and figures will be in " + out + ".\n"; !strings.Contains(stderr, want) {
		t.Errorf("no %q in %s", want, stderr)
	}
	b, err := os.ReadFile(filepath.Join(out, "against.json"))
	must(t, err)
	var report figures.Comparison
	must(t, json.Unmarshal(b, &report))
	checkAgainst(t, &report)
	if found, err := filepath.Glob(filepath.Join(out, "*")); err != nil || len(found) != len(report.Files) {
		t.Errorf("directory has %v, report names %v, %v", found, report.Files, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", other.kubeconfig)
	must(t, err)
	client := kubernetes.NewForConfigOrDie(config).CoreV1()
	nodes, err := client.Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(nodes.Items) > 0 {
		t.Errorf("%d nodes were left behind", len(nodes.Items))
	}
	soon(t, "the namespace is gone", func() bool {
		list, err := client.Namespaces().List(t.Context(), metav1.ListOptions{})
		must(t, err)
		return !slices.ContainsFunc(list.Items, func(n corev1.Namespace) bool { return strings.HasPrefix(n.Name, "plinth-bench") })
	})
}

// checkAgainst checks that each server has a figure in each row, and that no event is missing.
func checkAgainst(t *testing.T, r *figures.Comparison) {
	if len(r.Endpoints) != 2 || !r.Endpoints[0].Own || !strings.HasPrefix(r.Endpoints[1].Version, kind.Release) || len(r.Rows) < 45 {
		t.Errorf("%d rows of %+v", len(r.Rows), r.Endpoints)
	}
	ratios := 0
	for _, row := range r.Rows {
		want := 2
		if row.What == "start to ready, empty" {
			want = 1 // the other one was running already
		}
		if len(row.Cells) != want {
			t.Errorf("%s: %d servers", row.What, len(row.Cells))
		}
		faults := strings.HasSuffix(row.What, "events lost, repeated or out of order") || strings.HasSuffix(row.What, "failed writes")
		// Rounds are so short that the kernel's clock may not tick meanwhile.
		mayBeNone := faults || strings.Contains(row.What, "CPU") || strings.Contains(row.What, "disks") || strings.Contains(row.What, "growth")
		for _, c := range row.Cells {
			if c.Error != "" || faults && c.Value != 0 || !mayBeNone && c.Value <= 0 {
				t.Errorf("%s: %+v", row.What, c)
			}
			ratios += len(c.Ratios)
		}
	}
	if ratios < 20 {
		t.Errorf("there are %d ratios", ratios)
	}
}

// TestBenchDeployments measures two whole control planes, one of which runs already, and leaves nothing in that.
func TestBenchDeployments(t *testing.T) {
	needComponents(t)
	other := startPlinth(t, nil, "serve", "--listen", "127.0.0.1:0", "--cluster")
	out := filepath.Join(t.TempDir(), "out")
	code, _, text := runBuilt(t, "bench", "--quick", "--dsn", "sqlite://plinth.db", "--against", "other="+other.kubeconfig, "--only", "deployments", "--out", out)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, text)
	}
	b, err := os.ReadFile(filepath.Join(out, "against.json"))
	must(t, err)
	var report figures.Comparison
	must(t, json.Unmarshal(b, &report))
	if len(report.Endpoints) != 2 || len(report.Rows) != 6 {
		t.Fatalf("%d rows of %+v", len(report.Rows), report.Endpoints)
	}
	for _, row := range report.Rows {
		want := 2
		if row.Unit == "MiB" || strings.Contains(row.What, "CPU") {
			want = 1 // no --pid names the other one's process
		}
		if len(row.Cells) != want {
			t.Errorf("%s: %d servers", row.What, len(row.Cells))
		}
		for _, cell := range row.Cells {
			if cell.Error != "" || cell.Value <= 0 {
				t.Errorf("%s: %+v", row.What, cell)
			}
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", other.kubeconfig)
	must(t, err)
	nodes, err := kubernetes.NewForConfigOrDie(config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(nodes.Items) > 0 {
		t.Errorf("%d nodes were left behind", len(nodes.Items))
	}
}

func TestBenchAgainstRefuses(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--dsn", "oracle://u:s3cret@h/db", "--against", "a=http://x"}, "begins with oracle://"},
		{[]string{"--against", "etcd"}, `--against: "etcd": write NAME=URL or NAME=FILE`},
		{[]string{"--against", "etcd=ftp://x"}, "write NAME=URL or NAME=FILE, such as etcd=https://127.0.0.1:6443"},
		{[]string{"--against", "etcd=" + dir + "/absent"}, "no such file"},
		{[]string{"--against", "a=http://x", "--against", "a=http://y"}, `the name "a" comes twice`},
		{[]string{"--against", "sqlite=http://x", "--dsn", "sqlite://x"}, "is the name of two servers"},
		{[]string{"--against", "a=http://x", "--dsn", "sqlite://x", "--dsn", "sqlite://y"}, "is the name of two servers"},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--pid", "sqlite=1"}, `nothing is called "sqlite"; there are a`},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--pid", "a=x"}, "write NAME=PID"},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--disk", "a"}, "write NAME=DIRECTORY"},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--disk", "b=" + dir}, `nothing is called "b"`},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--disk", "a=" + dir + "/absent"}, "no such file"},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--churn", "1ms"}, "--churn: write at least 1s"},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--churn-rate", "-1"}, "write 0 or more"},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--objects", "7"}, "write 100 or more"},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--nodes", "0"}, "write numbers from 1"},
		{[]string{"--against", "a=http://x", "--dsn", "none", "--only", "reads"}, `"reads": write some of start, fill, get`},
		{[]string{"--against", "a=http://x", "--dsn", "sqlite://x", "--only", "deployments"}, "--only: this plinth was built without kube-controller-manager"},
		{[]string{"--pid", "sqlite=1"}, "--pid: write --against, too"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"bench", "--out", dir}, c.args...), &stdout, &stderr)
		out := stderr.String()
		if code != 2 || strings.Count(out, "\n") != 1 || strings.Contains(out, "s3cret") || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, printed %s", c.args, code, out)
		}
	}
}

// TestBenchAgainstUnreachable has a server that is not there, of which one line tells.
func TestBenchAgainstUnreachable(t *testing.T) {
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := run([]string{"bench", "--quick", "--dsn", "none", "--against", "etcd=http://127.0.0.1:1", "--out", out}, &stdout, &stderr)
	_, text, _ := strings.Cut(stderr.String(), "\n") // after what is measured
	if code != 1 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "etcd: http://127.0.0.1:1 is not reached") {
		t.Errorf("exit code %d: %s", code, stderr.String())
	}
	if left, err := filepath.Glob(filepath.Join(out, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
