package etcdtest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/plinth-io/plinth/dialects/logtest/spent"
)

// Patience is how long anything may take on a machine that is busy.
const Patience = 3 * time.Minute

// The programs that Program builds, and their modules below cmd/plinth/testdata. Names that end with a
// release are of the etcd before the one whose answers plinth gives; only make test-etcd builds these.
var programs = map[string]struct{ module, path string }{
	"etcd":        {"etcd", "go.etcd.io/etcd/server/v3"},
	"etcdctl":     {"etcd", "go.etcd.io/etcd/etcdctl/v3"},
	"etcdutl":     {"etcd", "go.etcd.io/etcd/etcdutl/v3"},
	"etcd-3.6":    {"etcd36", "go.etcd.io/etcd/server/v3"},
	"etcdctl-3.6": {"etcd36", "go.etcd.io/etcd/etcdctl/v3"},
	"etcdutl-3.6": {"etcd36", "go.etcd.io/etcd/etcdutl/v3"},
	"kine":        {"kine", "github.com/k3s-io/kine"},
}

// Program builds a program, unless Go's cache has it, and returns its path. Building etcd takes about a
// minute on two processors, and kine as long again; a lookup in the cache takes a second.
func Program(t testing.TB, name string) string {
	t.Helper()
	if _, known := programs[name]; !known {
		t.Fatalf("no program %q", name)
	}
	found, _ := built.LoadOrStore(name, sync.OnceValues(func() (string, error) { return build(name) }))
	path, err := found.(func() (string, error))()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return path
}

// built has, by name, functions that return the path of a program.
var built sync.Map

func build(name string) (path string, err error) {
	defer spent.On("building "+name, time.Now())
	root, err := root()
	if err != nil {
		return "", err
	}
	// go tool keeps the program in Go's cache.
	cmd := exec.Command("go", "tool", "-n", programs[name].path)
	cmd.Dir = filepath.Join(root, "cmd", "plinth", "testdata", programs[name].module)
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false "+os.Getenv("GOFLAGS"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, &stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// root is the directory of plinth's module. Tests run in the directories of their packages.
func root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	return filepath.Dir(strings.TrimSpace(string(out))), err
}

// Start runs a real etcd with an empty key space until the test ends, and returns a connection to
// it. flags are etcd's own.
func Start(t testing.TB, flags ...string) *grpc.ClientConn {
	t.Helper()
	return Dial(t, StartAt(t, flags...))
}

// StartAt is Start for callers that dial themselves: it returns HOST:PORT.
func StartAt(t testing.TB, flags ...string) string {
	t.Helper()
	return startAt(t, "etcd", flags)
}

// StartOlderAt is StartAt for etcd 3.6.
func StartOlderAt(t testing.TB, flags ...string) string {
	t.Helper()
	return startAt(t, "etcd-3.6", flags)
}

func startAt(t testing.TB, name string, flags []string) string {
	t.Helper()
	program := Program(t, name)
	var out string
	for range 5 { // a port that was free may be somebody else's a moment later
		var address string
		if address, out = startEtcd(t, program, flags); address != "" {
			return address
		}
	}
	t.Fatalf("etcd does not start: %s", out)
	return ""
}

func startEtcd(t testing.TB, program string, flags []string) (address, out string) {
	client, peer := FreeAddress(t), FreeAddress(t)
	address, out = started(t, client, "etcd", exec.Command(program, append([]string{
		"--data-dir=" + t.TempDir(), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls=http://" + client, "--advertise-client-urls=http://" + client,
		"--listen-peer-urls=http://" + peer, "--initial-advertise-peer-urls=http://" + peer, "--initial-cluster=default=http://" + peer,
	}, flags...)...))
	if address != "" {
		settle(t, address)
	}
	return address, out
}

// settle waits until an etcd reports its final storage version. For a moment after its start, it reports none
// or an older one.
func settle(t testing.TB, address string) {
	maintenance := pb.NewMaintenanceClient(dial(t, address))
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		s, err := maintenance.Status(t.Context(), &pb.StatusRequest{})
		if err == nil && minor(s.StorageVersion) == minor(s.Version) {
			return
		}
	}
}

// minor returns major and minor version of a version.
func minor(version string) string {
	parts := strings.SplitN(version, ".", 3)
	return strings.Join(parts[:min(len(parts), 2)], ".")
}

// started runs a program until the test ends, and returns its address when it answers there. If the program
// ends first, the address is "", and out is its log.
func started(t testing.TB, client, name string, cmd *exec.Cmd) (address, out string) {
	cmd.SysProcAttr = withTest()
	var log buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	stop := func() {
		_ = cmd.Process.Kill()
		<-ended
	}
	if !answers(t, client, ended) {
		stop()
		return "", log.String()
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("%s's log:\n%s", name, &log)
		}
	})
	return client, ""
}

// answers waits until an etcd has elected itself, or a kine serves. It returns false if ended is closed
// first.
func answers(t testing.TB, address string, ended <-chan struct{}) bool {
	kv := pb.NewKVClient(dial(t, address))
	for end := time.Now().Add(Patience); time.Now().Before(end); {
		if _, err := kv.Range(t.Context(), &pb.RangeRequest{Key: []byte("a")}); err == nil {
			return true
		}
		select {
		case <-ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
	return false
}

// FreeAddress returns an address on loopback whose port is free.
func FreeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Dial returns a connection to HOST:PORT that is closed when the test ends.
func Dial(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	return dial(t, address)
}

func dial(t testing.TB, address string) *grpc.ClientConn {
	c, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)))
	if err != nil {
		t.Fatal(fmt.Errorf("dial %s: %w", address, err))
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// buffer is a bytes.Buffer for several goroutines.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// StartKine runs a real kine on a database until the test ends, and returns its HOST:PORT. endpoint is the
// database in kine's notation.
func StartKine(t testing.TB, endpoint string) string {
	t.Helper()
	program := Program(t, "kine")
	var out string
	for range 5 { // a port that was free may be somebody else's a moment later
		var address string
		if address, out = startKine(t, program, endpoint); address != "" {
			return address
		}
	}
	t.Fatalf("kine does not start: %s", out)
	return ""
}

func startKine(t testing.TB, program, endpoint string) (address, out string) {
	address = FreeAddress(t)
	cmd := exec.Command(program, "--endpoint="+endpoint, "--listen-address=tcp://"+address, "--metrics-bind-address=0")
	cmd.Dir = t.TempDir()
	return started(t, address, "kine", cmd)
}
