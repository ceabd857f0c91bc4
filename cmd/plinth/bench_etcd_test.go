package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/bench/etcdbench"
	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// TestBenchEtcd measures the program, on the databases that there
// are, and another one that is running already, whose keys have to be gone in the end.
func TestBenchEtcd(t *testing.T) {
	other := startEtcd(t, t.TempDir())
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr := runBuilt(t, "bench", "etcd", "--quick", "--churn", "1s", "--against", "other="+other.urls[0], "--pid", fmt.Sprint("other=", other.cmd.Process.Pid), "--out", out)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	t.Logf("\n%s", stdout)
	if want := ", other. Charts and figures will be in " + out + ".\n"; !strings.Contains(stderr, want) {
		t.Errorf("no %q in %s", want, stderr)
	}
	b, err := os.ReadFile(filepath.Join(out, "etcd.json"))
	must(t, err)
	var report figures.Comparison
	must(t, json.Unmarshal(b, &report))
	checkEtcdReport(t, &report, len(benchDatabases()))
	found, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil || len(found) != len(report.Files) {
		t.Errorf("directory has %v, report names %v, %v", found, report.Files, err)
	}
	if keys := countKeys(t, other); keys != 0 {
		t.Errorf("%d keys were left behind", keys)
	}
}

// checkEtcdReport checks that each endpoint has a figure in each row, and that no event is missing.
func checkEtcdReport(t *testing.T, r *figures.Comparison, own int) {
	if len(r.Endpoints) != own+1 || len(r.Rows) != 22 {
		t.Errorf("%d endpoints and %d rows", len(r.Endpoints), len(r.Rows))
	}
	for _, row := range r.Rows {
		want := own + 1
		if strings.HasPrefix(row.What, "start to the first answer") {
			want = own // the other one was running already
		}
		if len(row.Cells) != want {
			t.Errorf("%s: %d endpoints", row.What, len(row.Cells))
		}
		for _, c := range row.Cells {
			faults := strings.HasSuffix(row.What, "events lost, repeated or out of order") || strings.HasSuffix(row.What, "failed writes")
			mayBeNone := faults || strings.HasPrefix(row.What, "idle CPU") || strings.Contains(row.What, "database") || strings.Contains(row.What, "disks")
			if c.Error != "" || faults && c.Value != 0 || !mayBeNone && c.Value <= 0 {
				t.Errorf("%s: %+v", row.What, c)
			}
			if c.Target != nil && c.Target.Met != nil {
				t.Errorf("%s: a quick run judges: %+v", row.What, c.Target)
			}
		}
	}
}

func TestBenchEtcdRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--dsn", "oracle://u:s3cret@h/db"}, "begins with oracle://"},
		{[]string{"--against", "etcd"}, `--against: "etcd": write NAME=URL`},
		{[]string{"--against", "etcd=127.0.0.1:2379"}, "write NAME=URL, such as etcd=http://127.0.0.1:2379"},
		{[]string{"--against", "a=http://x", "--against", "a=http://y"}, `the name "a" comes twice`},
		{[]string{"--against", "sqlite=http://x", "--dsn", "sqlite://x"}, "is the name of two endpoints"},
		{[]string{"--dsn", "sqlite://x", "--dsn", "sqlite://y"}, "is the name of two endpoints"},
		{[]string{"--dsn", "none"}, "leaves nothing to measure"},
		{[]string{"--kubeconfig", "x"}, `--kubeconfig: "x": write NAME=FILE`},
		{[]string{"--kubeconfig", "a=x", "--kubeconfig", "a=y"}, `the name "a" comes twice`},
		{[]string{"--dsn", "sqlite://x", "--pid", "sqlite=x"}, "write NAME=PID"},
		{[]string{"--dsn", "sqlite://x", "--pid", "kine=1"}, `nothing is called "kine"; there are sqlite`},
		{[]string{"--dsn", "sqlite://x", "--pid", "sqlite=2147483647"}, "--pid: sqlite=2147483647: there is no such process"},
		{[]string{"--dsn", "sqlite://x", "--churn", "1ms"}, "--churn: write at least 1s"},
		{[]string{"--dsn", "sqlite://x", "--churn-rate", "-1"}, "write 0 or more"},
		{[]string{"--dsn", "sqlite://x", "--only", "reads"}, `"reads": write some of start, fill, memory`},
	} {
		var stdout, stderr bytes.Buffer
		code := run(append([]string{"bench", "etcd"}, c.args...), &stdout, &stderr)
		out := stderr.String()
		if code != 2 || strings.Count(out, "\n") != 1 || strings.Contains(out, "s3cret") || !strings.Contains(out, c.want) {
			t.Errorf("%v: exit code %d, printed %s", c.args, code, out)
		}
	}
}

// TestBenchEtcdUnreachable has an endpoint that is not there, of which one line tells.
func TestBenchEtcdUnreachable(t *testing.T) {
	t.Parallel()
	url := "unix://" + filepath.Join(t.TempDir(), "absent")
	code, out := runPlinth(t, "bench", "etcd", "--dsn", "none", "--quick", "--against", "etcd="+url, "--out", t.TempDir())
	_, text, _ := strings.Cut(out, "\n") // after what is measured
	if code != 1 || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "plinth: etcd: "+url+" is not reached") || !strings.Contains(text, "start it, or write the URL of one that runs") {
		t.Errorf("exit code %d: %s", code, out)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // of which gRPC would log much
	must(t, err)
	go func() {
		for {
			c, err := silent.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	defer silent.Close()
	url = "http://" + silent.Addr().String()
	code, out = runPlinth(t, "bench", "etcd", "--dsn", "none", "--quick", "--against", "etcd="+url, "--out", t.TempDir())
	if _, text, _ := strings.Cut(out, "\n"); code != 1 || strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "plinth: etcd: "+url+" does not answer") {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// TestBenchEtcdObjects measures two servers of the Kubernetes API, in which nothing may be left behind.
func TestBenchEtcdObjects(t *testing.T) {
	serve := []string{"serve", "--listen", "127.0.0.1:0", "--controllers=namespace"}
	a, b := startPlinth(t, nil, serve...), startPlinth(t, nil, serve...)
	out := t.TempDir()
	var stdout, stderr bytes.Buffer
	code := run([]string{"bench", "etcd", "--quick", "--dsn", "none", "--kubeconfig", "sqlite=" + a.kubeconfig, "--kubeconfig", "etcd=" + b.kubeconfig, "--out", out}, &stdout, &stderr)
	if code != 0 || !strings.Contains(stderr.String(), "Measuring a kube-apiserver on sqlite, a kube-apiserver on etcd.") {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	t.Logf("\n%s", stdout.String())
	text, err := os.ReadFile(filepath.Join(out, "etcd.json"))
	must(t, err)
	var report figures.Comparison
	must(t, json.Unmarshal(text, &report))
	if len(report.Endpoints) != 2 || len(report.Rows) != 3 {
		t.Errorf("%d endpoints and %d rows", len(report.Endpoints), len(report.Rows))
	}
	for _, row := range report.Rows {
		own := row.Cells[0]
		if len(row.Cells) != 2 || own.Error != "" || own.Value <= 0 || len(own.Ratios) != 1 || own.Ratios[0].Target == nil {
			t.Errorf("%s: %+v", row.What, own)
		}
	}
	for _, p := range []*started{a, b} {
		config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
		must(t, err)
		soon(t, "the namespace is gone", func() bool {
			list, err := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			must(t, err)
			return !slices.ContainsFunc(list.Items, func(n corev1.Namespace) bool { return strings.HasPrefix(n.Name, "plinth-bench") })
		})
	}
}

// TestBenchEtcdInterrupted ends a run while its writers are at work.
func TestBenchEtcdInterrupted(t *testing.T) {
	t.Setenv(asPlinth, "1")
	exe, err := os.Executable()
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := t.TempDir()
	r, err := etcdbench.Run(ctx, etcdbench.Options{ComparisonOptions: measure.ComparisonOptions{
		Options: measure.Options{DSNs: []string{"sqlite://x"}, Dir: dir, Quick: true, Command: []string{exe, "etcd"}, Progress: &cancelAt{word: "churn, ", cancel: cancel}},
		Churn:   time.Hour, Only: []string{"watch", "churn"},
	}})
	if !errors.Is(err, measure.ErrInterrupted) || r == nil || !r.Interrupted || len(r.Rows) < 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	var table bytes.Buffer
	must(t, r.WriteTable(&table))
	if !strings.Contains(table.String(), "INTERRUPTED") {
		t.Error(table.String())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "scratch-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// cancelAt ends a context some time after a word was written.
type cancelAt struct {
	word   string
	cancel func()
	once   sync.Once
}

func (c *cancelAt) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(c.word)) {
		c.once.Do(func() { time.AfterFunc(time.Second, c.cancel) })
	}
	return len(b), nil
}

// countKeys returns the number of all keys of an endpoint.
func countKeys(t *testing.T, p *etcdProcess) int64 {
	t.Helper()
	client := p.client(nil)

	all, err := client.Get(t.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithCountOnly())
	must(t, err)
	return all.Count
}
