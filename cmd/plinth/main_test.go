package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/dialects/logtest"
	"github.com/plinth-io/plinth/dialects/logtest/spent"
	"github.com/plinth-io/plinth/server/kind"
	"github.com/plinth-io/plinth/server/logging"
)

// asPlinth makes the test binary be plinth, so that tests have a real process.
const asPlinth = "PLINTH_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlinth) != "" {
		os.Unsetenv(asPlinth)
		if isSQLite() {
			sqliteMain()
		}
		main()
	}
	// A process with the race detector sleeps for a second before it exits, so that other threads come to
	// tell of a race.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	logtest.AtOnce(6)
	code := m.Run()
	if dir := builtDir; dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// built is the program plinth as users have it. Commands of tests run it, because this binary, with the race
// detector, takes a second of a processor to start, and so do most servers (programFor).
var built = sync.OnceValues(func() (string, error) {
	defer spent.On("building cmd/plinth", time.Now())
	dir, err := os.MkdirTemp("", "plinth-built-")
	if err != nil {
		return "", err
	}
	builtDir = dir
	program := filepath.Join(dir, "plinth")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
})

// builtDir is to be removed at the end.
var builtDir string

// plinth returns the command in an empty directory with env alone, and what it writes
// to standard error.
func plinth(t *testing.T, env []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}, env...)
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	return cmd, stderr
}

// runBuilt runs the program with the databases of the tests, and what else the environment has.
func runBuilt(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd, complaints := plinth(t, os.Environ(), args...)
	var out bytes.Buffer
	cmd.Stdout = &out
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), complaints.String()
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		name string
		env  []string
		args []string
		has  string
	}{
		{"unknown command", nil, []string{"srve"}, `unknown command "srve"; did you mean plinth serve?`},
		{"unknown command like no other", nil, []string{"frobnicate"}, `unknown command "frobnicate"; see plinth --help`},
		{"help for an unknown command", nil, []string{"help", "nope"}, `unknown command "nope"; see plinth --help`},
		{"help for a mistyped command", nil, []string{"help", "versoin"}, "did you mean plinth version?"},
		{"unknown shell", nil, []string{"completion", "bsh"}, "did you mean plinth completion bash?"},
		{"argument", nil, []string{"serve", "now"}, `unexpected "now"; see plinth serve --help`},
		{"mistyped flag", nil, []string{"serve", "--lisen=:1"}, "unknown flag --lisen; did you mean --listen?"},
		{"one dash", nil, []string{"serve", "-listen=:1"}, "unknown flag -listen; did you mean --listen?"},
		{"unknown flag", nil, []string{"serve", "--frobnicate"}, "unknown flag --frobnicate; see plinth serve --help"},
		{"unknown letter", nil, []string{"-x"}, "unknown flag -x; see plinth --help"},
		{"flag without a value", nil, []string{"serve", "--listen"}, "--listen needs a value; write --listen HOST:PORT"},
		{"output", nil, []string{"version", "-o", "xml"}, `--output: "xml": write json or yaml`},
		{"duration", nil, []string{"serve", "--history=5"}, `--history: "5": write a duration such as`},
		{"bool", nil, []string{"serve", "--allow-privileged=si"}, `--allow-privileged: "si": write true or false`},
		{"bool of upstream", nil, []string{"serve", "--audit-log-compress=maybe"}, `--audit-log-compress: "maybe": write true or false`},
		{"bool in the environment", []string{"PLINTH_ALLOW_PRIVILEGED=si"}, []string{"serve"}, `PLINTH_ALLOW_PRIVILEGED: "si": write true or false`},
		{"float", nil, []string{"serve", "--audit-log-batch-throttle-qps=x"}, "write a number such as 0.5"},
		{"list", nil, []string{"serve", `--tls-san="a`}, "write words separated by commas"},
		{"number of upstream", nil, []string{"serve", "--default-not-ready-toleration-seconds=x"}, "write a whole number"},
		{"event TTL", nil, []string{"serve", "--event-ttl=-1s"}, "--event-ttl -1s is negative; write a duration such as 1h"},
		{"event TTL below a second", nil, []string{"serve", "--event-ttl=1ns"}, "--event-ttl 1ns is less than a second: write a duration such as 1h"},
		{"what is kept", nil, []string{"serve", "--keep=pods"}, `--keep: "pods": write RESOURCE=DURATION, RESOURCE=COUNT or RESOURCE=DURATION/COUNT, such as deployments.apps=90d`},
		{"what is kept, in the environment", []string{"PLINTH_KEEP=*=7d,pods=long"}, []string{"serve"}, `PLINTH_KEEP: "pods=long": "long" is no duration: write one such as 12h, 90d or 2w, or 0`},
		{"what is kept of no resource", nil, []string{"serve", "--keep=deployments=7d"}, `--keep: "deployments": write deployments.apps`},
		{"what is kept in a file", nil, []string{"serve", "--keep-file=nowhere"}, "--keep-file: open nowhere: no such file"},
		{"number", nil, []string{"serve", "--max-requests-inflight", "many"}, "write a whole number"},
		{"scrub without pause", nil, []string{"serve", "--scrub-interval=1ms"}, "--scrub-interval 1ms: write at least 100ms"},
		{"negative number", nil, []string{"serve", "--max-requests-inflight=-1"}, "--max-requests-inflight -1 is negative"},
		{"negative duration", nil, []string{"serve", "--request-timeout=-1s"}, "--request-timeout -1s is negative: write a duration such as 30s"},
		{"delay", nil, []string{"serve", "--shutdown-delay-duration=1h"}, "--shutdown-delay-duration 1h0m0s: write less than --shutdown-timeout, 30s"},
		{"duration in the environment", []string{"PLINTH_HISTORY=long"}, []string{"serve"}, `PLINTH_HISTORY: "long": write a duration`},
		{"listen", nil, []string{"serve", "--listen", "6443"}, `--listen "6443": write HOST:PORT`},
		{"listen in the environment", []string{"PLINTH_LISTEN=nowhere"}, []string{"serve"}, `PLINTH_LISTEN "nowhere": write HOST:PORT`},
		{"name", nil, []string{"serve", "--tls-san", "a b"}, `--tls-san: "a b": write a DNS name`},
		{"controllers", nil, []string{"serve", "--controllers=deployment"}, `--controllers: controller "deployment" is not known; write *, none`},
		{"components that are not built in", nil, []string{"serve", "--cluster"}, "this plinth was built without kube-controller-manager and kube-scheduler; releases have both"},
		{"demo without components", nil, []string{"demo"}, "this plinth was built without kube-controller-manager and kube-scheduler; releases have both"},
		{"pods' addresses without a cluster", []string{"PLINTH_CLUSTER_CIDR=10.244.0.0/16"}, []string{"serve"}, "PLINTH_CLUSTER_CIDR has no effect without --cluster"},
		{"arguments without a cluster", nil, []string{"serve", "--kube-scheduler-arg=v=1"}, "--kube-scheduler-arg has no effect without --cluster"},
		{"simulated nodes", nil, []string{"serve", "--simulate-nodes=9999"}, "--simulate-nodes 9999: write a number from 0 to 2048"},
		{"none and others", nil, []string{"serve", "--controllers=none,podgc"}, "--controllers: none turns all controllers off and stands alone"},
		{"addresses of Services", nil, []string{"serve", "--service-cluster-ip-range=x"}, `--service-cluster-ip-range "x": write a range`},
		{"ports of Services", nil, []string{"serve", "--service-node-port-range=x"}, `--service-node-port-range "x": write FIRST-LAST`},
		{"key for kubelets", nil, []string{"serve", "--kubelet-client-certificate=x"}, "--kubelet-client-certificate and --kubelet-client-key belong together"},
		{"issuer", []string{"PLINTH_SERVICE_ACCOUNT_ISSUER=https://a:b"}, []string{"serve"}, `PLINTH_SERVICE_ACCOUNT_ISSUER "https://a:b": write a URL`},
		{"admission plugin", nil, []string{"serve", "--enable-admission-plugins=Nope"}, `--enable-admission-plugins: plugin "Nope" is unknown`},
		{"runtime config", nil, []string{"serve", "--runtime-config=apps/v1/deployment=false"}, "write its plural name"},
		{"runtime config in the environment", []string{"PLINTH_RUNTIME_CONFIG=api/all=maybe"}, []string{"serve"}, "PLINTH_RUNTIME_CONFIG: api/all=maybe: write api/all=true"},
		{"removed API without a name", nil, []string{"serve", "--serve-removed-apis=,"}, `--serve-removed-apis: removed API "": write all, a VERSION`},
		{"feature gates", nil, []string{"serve", "--feature-gates=Nonsense=true"}, "--feature-gates: unrecognized feature gate: Nonsense"},
		{"feature gate that is not a bool", nil, []string{"serve", "--feature-gates=AllAlpha=si"}, `--feature-gates: "AllAlpha=si": write AllAlpha=true or AllAlpha=false`},
		{"data directory", nil, []string{"serve", "--data-dir="}, "--data-dir is empty; write a path"},
		{"DSN without a scheme", nil, []string{"serve", "--dsn", "plinth.db", "--listen=127.0.0.1:0"}, `--dsn: "plinth.db" has no scheme; did you mean sqlite://plinth.db?`},
		{"DSN that may be a password", nil, []string{"serve", "--dsn", "s3cret"}, "--dsn: it has no scheme (it is not shown"},
		{"DSN of another kind", nil, []string{"serve", "--dsn", "oracle://u:s3cret@h/db", "--listen=127.0.0.1:0"}, "--dsn: it begins with oracle://"},
		{"DSN of a mistyped kind", nil, []string{"serve", "--dsn", "postgress://u:s3cret@h/db"}, "did you mean postgres://?"},
		{"DSN with a parameter", nil, []string{"serve", "--dsn", "postgres://u:s3cret@h/db?sslmod=s3cret", "--listen=127.0.0.1:0"}, `unknown parameter "sslmod", did you mean sslmode?`},
		{"DSN with a parameter of others", nil, []string{"serve", "--dsn", "mariadb://u:s3cret@h/db?parseTime=true"}, "parameter parseTime is not known here"},
		{"DSN with a parameter that may be a password", nil, []string{"serve", "--dsn", "mysql://u:12?s3cret", "--listen=127.0.0.1:0"}, "unknown parameter (not shown"},
		{"DSN in the environment", []string{"PLINTH_DSN=mysql://u:s3cret@h:x/db"}, []string{"serve", "--listen=127.0.0.1:0"}, "PLINTH_DSN: mysql DSN: it cannot be parsed; write mysql://"},
		{"DSN to copy from", nil, []string{"copy", "--from", "plinth.db", "--to", "sqlite://b.db"}, `--from: "plinth.db" has no scheme`},
		{"DSN to measure", nil, []string{"bench", "--dsn", "plinth.db"}, `--dsn: "plinth.db" has no scheme`},
		{"verbosity", nil, []string{"serve", "-v", "much"}, `--v: "much": write 0, or a higher number`},
		{"verbosity in the environment", []string{"PLINTH_V=-1"}, []string{"serve"}, `PLINTH_V: "-1": write 0, or a higher number`},
		{"log format", nil, []string{"serve", "--log-format=xml"}, `--log-format: "xml": write text or json`},
		{"log format in the environment", []string{"PLINTH_LOG_FORMAT=yaml"}, []string{"serve"}, `PLINTH_LOG_FORMAT: "yaml": write text or json`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cmd, stderr := plinth(t, tt.env, tt.args...)
			_ = cmd.Run()
			out := stderr.String()
			if code := cmd.ProcessState.ExitCode(); code != 2 {
				t.Errorf("exit code %d", code)
			}
			if !strings.Contains(out, tt.has) || strings.Count(out, "\n") != 1 || strings.Contains(out, "s3cret") {
				t.Errorf("printed %s; want one line with %s and no password", out, tt.has)
			}
			if !strings.HasPrefix(out, "plinth: ") || strings.Contains(out, "strconv") {
				t.Errorf("printed %s; want plinth: in front and nothing of Go", out)
			}
		})
	}
}

// TestVersionCommand prints the version in all its forms. The build has only what the linker tells
// a release.
func TestVersionCommand(t *testing.T) {
	text := `^plinth \S+ \(Kubernetes ` + regexp.QuoteMeta(kind.Release) + `, go\S+, \w+/\w+, commit \w+.*\)\n$`
	fields := `\s+"version": ".*",\s+"commit": ".*",\s+"date": ".*",\s+"treeState": ".*",\s+"kubernetesVersion": "` + regexp.QuoteMeta(kind.Release) + `",\s+"goVersion": "go.*",\s+"platform": ".*"\s+\}\n$`
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"version"}, text},
		{[]string{"--version"}, text},
		{[]string{"version", "-o", "json"}, `^\{` + fields},
		{[]string{"version", "--output=yaml"}, `^commit: `},
	} {
		cmd, _ := plinth(t, nil, tt.args...)
		cmd.Stderr = nil
		if out, err := cmd.Output(); err != nil || !regexp.MustCompile(tt.want).Match(out) {
			t.Errorf("%v: %s, %v", tt.args, out, err)
		}
	}
}

// started is a running plinth that has printed its line.
type started struct {
	cmd        *exec.Cmd
	stderr     *bytes.Buffer
	kubeconfig string
	rest       *bufio.Reader // of standard output
}

func startPlinth(t *testing.T, env []string, args ...string) *started {
	t.Helper()
	cmd, stderr := plinth(t, env, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	rest := bufio.NewReader(stdout)
	line, err := rest.ReadString('\n')
	found := regexp.MustCompile(`^export KUBECONFIG=(\S+) +# serving https://127\.0\.0\.1:\d+\n$`).FindStringSubmatch(line)
	if err != nil || found == nil {
		cmd.Wait()
		t.Fatalf("printed %q, %v; on standard error: %s", line, err, stderr)
	}
	return &started{cmd, stderr, found[1], rest}
}

// serve, use, SIGTERM: exit 0, one line on standard output, and the few records of a start and a
// stop on standard error.
func TestServe(t *testing.T) {
	p := startPlinth(t, []string{"PLINTH_LISTEN=127.0.0.1:1", "PLINTH_DATA_DIR=elsewhere"}, "serve", "--listen", "127.0.0.1:0")
	if want := filepath.Join(p.cmd.Dir, "elsewhere", "kubeconfig"); p.kubeconfig != want {
		t.Errorf("kubeconfig %s, want %s", p.kubeconfig, want)
	}
	config, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	soon(t, "/readyz is ok", func() bool { // the server's APIServices are registered soon
		ready, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil && string(ready) == "ok"
	})
	w, err := client.CoreV1().Namespaces().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for range w.ResultChan() {
	}
	more, _ := p.rest.ReadString(0)
	if err := p.cmd.Wait(); err != nil || more != "" {
		t.Errorf("ended with %v; more on standard output %q", err, more)
	}
	matchAll(t, withoutChance(messages(t, p.stderr.String())),
		`INFO  starting version=.* dataDir=`+filepath.Dir(p.kubeconfig),
		`INFO  made a new database .*`, `INFO  made certificates .*`, `INFO  ready .*`, `INFO  stopping .*`, `INFO  stopped .*`)
}

// The second signal does not wait for the delay. It is SIGTERM, because tests that a shell has put in the
// background begin with SIGINT ignored.
func TestSecondSignal(t *testing.T) {
	p := startPlinth(t, nil, "serve", "--listen", "127.0.0.1:0", "--shutdown-delay-duration", "20m", "--shutdown-timeout", "30m")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	for {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && err != os.ErrProcessDone {
			t.Fatal(err)
		}
		select {
		case err := <-ended:
			if err == nil {
				t.Error("exit code 0 after a stop that was cut short")
			}
			return
		case <-ctx.Done():
			t.Fatal("still running")
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A second process on the same database is refused, and the kubeconfig still points at
// the first.
func TestSecondProcess(t *testing.T) {
	p := startPlinth(t, nil, "serve", "--listen", "127.0.0.1:0")
	before, err := os.ReadFile(p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	second, stderr := plinth(t, nil, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Dir(p.kubeconfig))
	_ = second.Run()
	if code := second.ProcessState.ExitCode(); code != 1 || strings.Count(stderr.String(), "\n") != 2 || !strings.Contains(stderr.String(), "\nplinth: ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if after, err := os.ReadFile(p.kubeconfig); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the kubeconfig was changed, or %v", err)
	}
}

// A DSN that the database server refuses is told at once, and not waited for.
func TestRefusedDSN(t *testing.T) {
	for name, dsn := range map[string]string{"postgres": logtest.Postgres(t), "mariadb": logtest.MariaDB(t)} {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal("the server's DSN cannot be parsed")
		}
		u.Path = "/no-such-database"
		cmd, stderr := plinth(t, nil, "serve", "--listen", "127.0.0.1:0", "--database-timeout", "20m", "--dsn", u.String())
		_ = cmd.Run()
		want := "\nplinth: open database: database \"no-such-database\" does not exist; create it or write another name in the DSN\n"
		if code := cmd.ProcessState.ExitCode(); code != 2 || !strings.HasSuffix(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 2 {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b-c.d": "/a/b-c.d", "/a b": "'/a b'", "/it's": `'/it'\''s'`, "/$HOME": "'/$HOME'",
	} {
		if got := shellQuote(path); got != want {
			t.Errorf("shellQuote(%s) = %s, want %s", path, got, want)
		}
	}
}

func init() { logging.Libraries(logging.New(os.Stderr, logging.Options{}), 0) }

// forEach runs test on a fresh database of each dialect, side by side.
func forEach(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Parallel()
	logtest.Each(t, func(t *testing.T, d logtest.Dialect) { test(t, d.Fresh(t)) })
}

// aloneAndShared runs test on a fresh database that one server has alone and on one that servers share, side by side: it is for
// what clients do, whose verbs server/rest tests on each dialect.
func aloneAndShared(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Parallel()
	logtest.AloneAndShared(t, func(t *testing.T, d logtest.Dialect) { test(t, d.Fresh(t)) })
}
