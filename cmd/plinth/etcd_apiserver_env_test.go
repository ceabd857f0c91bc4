package main

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
)

// apiserverModules are the modules below testdata whose kube-apiservers run on plinth etcd: that of plinth's own
// release, and that of the oldest one.
var apiserverModules = []string{"cluster", "oldest"}

// buildAPIServer builds the kube-apiserver of a module below testdata into a directory, and returns its path and its
// release.
func buildAPIServer(t *testing.T, module, dir string) (program, release string) {
	t.Helper()
	release = moduleVersions(t, filepath.Join("testdata", module, "go.mod"))["k8s.io/kubernetes"]
	program = filepath.Join(dir, "kube-apiserver-"+release)
	must(t, buildPrograms(module, release, program, "k8s.io/kubernetes/cmd/kube-apiserver"))
	return program, release
}

// stockAPIServer is a kube-apiserver as its release has it, with certificates of its own.
type stockAPIServer struct {
	program, dir, port string
	flags              []string
	cmd                *exec.Cmd
	ended              chan struct{}
	config             *clientrest.Config
	kube               kubernetes.Interface
}

// startAPIServer starts one on the members of an etcd and returns when it is ready.
func startAPIServer(t *testing.T, program string, flags ...string) *stockAPIServer {
	t.Helper()
	s := &stockAPIServer{program: program, dir: t.TempDir(), port: freePort(t)}
	signed(t, s.dir, "ca", x509.Certificate{Subject: subjectOf("ca"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, "")
	signed(t, s.dir, "server", x509.Certificate{Subject: subjectOf("server"), IPAddresses: local, DNSNames: kubernetesNames, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, "ca")
	signed(t, s.dir, "admin", x509.Certificate{Subject: subjectOf("admin", "system:masters"), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, "ca")
	path := func(name string) string { return filepath.Join(s.dir, name) }
	s.flags = append([]string{
		"--bind-address=127.0.0.1", "--secure-port=" + s.port, "--advertise-address=192.0.2.1", "--service-cluster-ip-range=10.0.0.0/24",
		"--client-ca-file=" + path("ca.crt"), "--tls-cert-file=" + path("server.crt"), "--tls-private-key-file=" + path("server.key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file=" + path("server.key"), "--service-account-signing-key-file=" + path("server.key"),
		"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", // no controller makes accounts
	}, flags...)
	s.config = &clientrest.Config{
		Host:            "https://127.0.0.1:" + s.port,
		TLSClientConfig: clientrest.TLSClientConfig{CAFile: path("ca.crt"), CertFile: path("admin.crt"), KeyFile: path("admin.key")},
		QPS:             -1,
	}
	s.kube = kubernetes.NewForConfigOrDie(s.config)
	s.writeKubeconfig(t)
	t.Cleanup(func() {
		s.stop()
		if t.Failed() {
			t.Logf("kube-apiserver: the end of its log:\n%s", tail(s.log(), 40))
		}
	})
	s.start(t)
	return s
}

func (s *stockAPIServer) log() string { return filepath.Join(s.dir, "log") }

func (s *stockAPIServer) writeKubeconfig(t *testing.T) {
	t.Helper()
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority: ca.crt}}]
users: [{name: u, user: {client-certificate: admin.crt, client-key: admin.key}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
`, s.config.Host)
	must(t, os.WriteFile(filepath.Join(s.dir, "kubeconfig"), []byte(text), 0o600))
}

// start starts the process, also again after a stop, with an empty log, and waits until it is ready.
func (s *stockAPIServer) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	must(t, err)
	defer log.Close()
	cmd := exec.Command(s.program, s.flags...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	must(t, cmd.Start())
	ended := make(chan struct{})
	s.cmd, s.ended = cmd, ended
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	soon(t, "kube-apiserver is ready", func() bool {
		select {
		case <-ended:
			t.Fatalf("kube-apiserver has ended: %s", tail(s.log(), 20))
		default:
		}
		out, err := s.kube.CoreV1().RESTClient().Get().AbsPath("/readyz").DoRaw(t.Context())
		return err == nil && string(out) == "ok"
	})
}

// stop ends the process as systemd does, and kills it if it does not end.
func (s *stockAPIServer) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(30 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.ended
	}
}

// command is kubectl, run by the admin.
func (s *stockAPIServer) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := kubectltest.Path()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(s.dir, "kubeconfig"), "HOME="+s.dir)
	return cmd
}

// kubectl runs kubectl, which must succeed, and returns what it printed.
func (s *stockAPIServer) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	return s.kubectlWith(t, "", args...)
}

// kubectlWith is kubectl with an input.
func (s *stockAPIServer) kubectlWith(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := s.command(t, args...)
	cmd.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// get returns what a path answers.
func (s *stockAPIServer) get(t *testing.T, path string) string {
	t.Helper()
	out, err := s.kube.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(t.Context())
	must(t, err)
	return string(out)
}

var (
	// storageComplaint matches errors of kube-apiserver about its storage.
	storageComplaint = regexp.MustCompile(`(?m)^[EF]\d{4} .*(etcd|storage|compact|cacher|watch_cache|reflector|progress|revision|grpc).*$`)
	// storageFault matches what no outage excuses.
	storageFault = regexp.MustCompile(`(?m)^(panic: .*|fatal error: .*|.*(Observed a panic|required revision|too old resource version|RequestWatchProgress|cache is corrupted|inconsisten).*)$`)
)

// noComplaints fails the test if the log has lines that match.
func (s *stockAPIServer) noComplaints(t *testing.T, bad *regexp.Regexp) {
	t.Helper()
	text, err := os.ReadFile(s.log())
	must(t, err)
	for _, line := range bad.FindAll(text, 10) {
		t.Errorf("kube-apiserver's log: %s", line)
	}
}

// kill ends plinth etcd as a crash does.
func (p *etcdProcess) kill() {
	p.t.Helper()
	p.ended = true
	must(p.t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
}

// host is HOST:PORT of the first URL.
func (p *etcdProcess) host() string {
	p.t.Helper()
	u, err := url.Parse(p.urls[0])
	must(p.t, err)
	return u.Host
}
