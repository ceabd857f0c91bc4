package main

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/dialects/logtest"
)

// asPlinth makes the test binary be plinth, so that tests have a real process.
const asPlinth = "PLINTH_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asPlinth) != "" {
		os.Unsetenv(asPlinth)
		main()
	}
	// Most tests here wait for other processes: as many at once as processors is too few.
	flag.Parse()
	if n := flag.Lookup("test.parallel").Value; n.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		if err := n.Set("6"); err != nil {
			panic(err) // not a number
		}
	}
	os.Exit(m.Run())
}

// plinth returns the command in an empty directory with env alone, and what it writes
// to standard error.
func plinth(t *testing.T, env []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{asPlinth + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir}, env...)
	stderr := new(bytes.Buffer)
	cmd.Stderr = stderr
	return cmd, stderr
}

func TestUsageErrors(t *testing.T) {
	tests := []struct {
		name string
		env  []string
		args []string
		has  string
	}{
		{"unknown command", nil, []string{"serv"}, `unexpected "serv"; see plinth --help`},
		{"argument", nil, []string{"serve", "now"}, `unexpected "now"; see plinth serve --help`},
		{"unknown flag", nil, []string{"serve", "--lisen=:1"}, "see plinth serve --help"},
		{"duration", nil, []string{"serve", "--history=5"}, `--history: "5": write a duration such as`},
		{"event TTL", nil, []string{"serve", "--event-ttl=-1s"}, "write a duration such as 1h"},
		{"event TTL below a second", nil, []string{"serve", "--event-ttl=1ns"}, "write a duration such as 1h"},
		{"number", nil, []string{"serve", "--max-requests-inflight", "many"}, "write a whole number"},
		{"duration in the environment", []string{"PLINTH_HISTORY=long"}, []string{"serve"}, `PLINTH_HISTORY: "long": write a duration`},
		{"listen", nil, []string{"serve", "--listen", "6443"}, "write HOST:PORT"},
		{"listen in the environment", []string{"PLINTH_LISTEN=nowhere"}, []string{"serve"}, "write HOST:PORT"},
		{"name", nil, []string{"serve", "--tls-san", "a b"}, "write a DNS name"},
		{"runtime config", nil, []string{"serve", "--runtime-config=apps/v1/deployment=false"}, "write its plural name"},
		{"runtime config in the environment", []string{"PLINTH_RUNTIME_CONFIG=api/all=maybe"}, []string{"serve"}, "write api/all=true or api/all=false"},
		{"removed API without a name", nil, []string{"serve", "--serve-removed-apis=,"}, `removed API "": write all, a VERSION`},
		{"feature gates", nil, []string{"serve", "--feature-gates=Nonsense=true"}, "--feature-gates: unrecognized feature gate: Nonsense"},
		{"data directory", nil, []string{"serve", "--data-dir="}, "write a path"},
		{"DSN without a scheme", nil, []string{"serve", "--dsn", "plinth.db", "--listen=127.0.0.1:0"}, "write sqlite://"},
		{"DSN of another kind", nil, []string{"serve", "--dsn", "oracle://u:s3cret@h/db", "--listen=127.0.0.1:0"}, "write "},
		{"DSN with a parameter", nil, []string{"serve", "--dsn", "postgres://u:s3cret@h/db?pasword=s3cret", "--listen=127.0.0.1:0"}, "unknown parameter"},
		{"DSN in the environment", []string{"PLINTH_DSN=mysql://u:s3cret@h:x/db"}, []string{"serve", "--listen=127.0.0.1:0"}, "write mysql://"},
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
		})
	}
}

func TestVersionCommand(t *testing.T) {
	cmd, _ := plinth(t, nil, "version")
	cmd.Stderr = nil
	out, err := cmd.Output()
	if want := regexp.MustCompile(`^plinth \S+ \(Kubernetes v1\.33\.\d+, go\S+, \w+/\w+\)\n$`); err != nil || !want.Match(out) {
		t.Errorf("%s, %v", out, err)
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

// serve, use, SIGTERM: exit 0, one line on standard output, none on standard error.
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
	ready, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
	if err != nil || string(ready) != "ok" {
		t.Errorf("/readyz: %s, %v", ready, err)
	}
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
	if err := p.cmd.Wait(); err != nil || more != "" || p.stderr.Len() != 0 {
		t.Errorf("ended with %v; more on standard output %q, on standard error %q", err, more, p.stderr)
	}
}

// The second signal does not wait for the delay.
func TestSecondSignal(t *testing.T) {
	p := startPlinth(t, nil, "serve", "--listen", "127.0.0.1:0", "--shutdown-delay-duration", "20m", "--shutdown-timeout", "30m")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	for {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil && err != os.ErrProcessDone {
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
	if code := second.ProcessState.ExitCode(); code != 1 || strings.Count(stderr.String(), "\n") != 1 {
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
		want := "plinth: open database: database \"no-such-database\" does not exist; create it or write another name in the DSN\n"
		if code := cmd.ProcessState.ExitCode(); code != 2 || stderr.String() != want {
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
