package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"github.com/plinth-io/plinth/dialects/logtest/spent"
)

// buildOperator builds testdata/operator.
func buildOperator(dir string) (string, error) {
	program := filepath.Join(dir, "site-operator")
	return program, buildModule(filepath.Join("testdata", "operator"), program, "build")
}

// buildModule builds a module of testdata with go build or go test -c.
func buildModule(module, program string, command ...string) error {
	defer spent.On("building "+module, time.Now())
	return goIn(module, append(command, "-ldflags=-s -w", "-o", program, ".")...)
}

// goIn runs go in a module of testdata, with the flags that make has for all builds.
func goIn(module string, args ...string) error {
	cmd := exec.Command("go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false "+os.Getenv("GOFLAGS"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// operator is a running site-operator.
type operator struct {
	cmd     *exec.Cmd
	address string // of its webhooks
	log     string
}

// operatorFiles are what the operators of one server share.
type operatorFiles struct {
	program, dir, published, kubeconfig string
	certificate                         []byte // PEM; signed by itself
}

func newOperatorFiles(t *testing.T, program string, p *process, url string) *operatorFiles {
	t.Helper()
	dir := t.TempDir()
	f := &operatorFiles{program: program, dir: dir, published: filepath.Join(dir, "published"), kubeconfig: filepath.Join(dir, "kubeconfig")}
	must(t, os.Mkdir(f.published, 0o755))
	config, err := clientcmd.LoadFromFile(p.kubeconfig())
	must(t, err)
	for _, c := range config.Clusters {
		c.Server = url
	}
	must(t, clientcmd.WriteToFile(*config, f.kubeconfig))
	var key []byte
	f.certificate, key, err = cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "tls.crt"), f.certificate, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "tls.key"), key, 0o600))
	return f
}

// start returns when the operator's webhooks are served.
func (f *operatorFiles) start(t *testing.T, name string) *operator {
	t.Helper()
	o := &operator{log: filepath.Join(f.dir, name+".log")}
	o.cmd = exec.Command(f.program, "--kubeconfig="+f.kubeconfig, "--published="+f.published,
		"--cert="+filepath.Join(f.dir, "tls.crt"), "--key="+filepath.Join(f.dir, "tls.key"))
	log, err := os.Create(o.log)
	must(t, err)
	defer log.Close()
	o.cmd.Stderr = log
	stdout, err := o.cmd.StdoutPipe()
	must(t, err)
	must(t, o.cmd.Start())
	t.Cleanup(func() {
		if o.cmd.ProcessState == nil {
			_ = o.cmd.Process.Kill()
			_ = o.cmd.Wait()
		}
		if text, _ := os.ReadFile(o.log); t.Failed() {
			t.Logf("operator %s:\n%s", name, text)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("operator %s ended: %v", name, err)
	}
	o.address = strings.TrimSpace(line)
	return o
}

// stop ends the operator as Kubernetes does; it must exit with 0.
func (o *operator) stop(t *testing.T) {
	t.Helper()
	must(t, o.cmd.Process.Signal(syscall.SIGTERM))
	if err := o.cmd.Wait(); err != nil {
		t.Errorf("the operator ended with %v", err)
	}
}

// forwarder is an address that stays while the server behind it comes and goes.
type forwarder struct {
	listener net.Listener
	to       atomic.Pointer[string] // nil: connections are refused
	running  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

func newForwarder(t *testing.T) *forwarder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	f := &forwarder{listener: l, conns: map[net.Conn]bool{}}
	f.running.Go(f.accept)
	t.Cleanup(f.close)
	return f
}

func (f *forwarder) url() string { return "https://" + f.listener.Addr().String() }

// point sends connections made from now on to the address.
func (f *forwarder) point(address string) { f.to.Store(&address) }

func (f *forwarder) accept() {
	for {
		from, err := f.listener.Accept()
		if err != nil {
			return
		}
		f.running.Go(func() { f.forward(from) })
	}
}

func (f *forwarder) forward(from net.Conn) {
	defer from.Close()
	address := f.to.Load()
	if address == nil {
		return
	}
	to, err := net.Dial("tcp", *address)
	if err != nil {
		return
	}
	defer to.Close()
	if !f.keep(from, to) {
		return
	}
	defer f.forget(from, to)
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(from, to)
		from.Close()
	})
	_, _ = io.Copy(to, from)
	to.Close()
	back.Wait()
}

func (f *forwarder) keep(conns ...net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		f.conns[c] = true
	}
	return !f.closed
}

func (f *forwarder) forget(conns ...net.Conn) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range conns {
		delete(f.conns, c)
	}
}

func (f *forwarder) close() {
	f.listener.Close()
	f.mu.Lock()
	f.closed = true
	for c := range f.conns {
		c.Close()
	}
	f.mu.Unlock()
	f.running.Wait()
}
