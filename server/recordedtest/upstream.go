package recordedtest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Upstream is a kube-apiserver that answers instead of plinth, so that its answers are recorded.
type Upstream struct {
	URL string
	// Anonymous shows nobody's credentials; Admin shows those of an administrator where a request has none.
	Anonymous, Admin *http.Client

	servers []process
}

type process struct {
	*exec.Cmd
	ended chan struct{}
}

// Recording tells whether recordings are made.
func Recording() bool { return record != "" }

// patience is how long a kube-apiserver may take to begin on a busy machine.
const patience = 2 * time.Minute

// StartUpstream starts a kube-apiserver on an etcd of its own until the test ends, if recordings are made
// (make record), and else returns nil. tokens is a file of tokens, or "". flags come after those that each
// one has, and their paths are relative to the test's directory.
func StartUpstream(t testing.TB, tokens string, flags ...string) *Upstream {
	t.Helper()
	if record == "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "recorded-") // not the test's: etcd's files may stay a moment longer
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	u := &Upstream{}
	t.Cleanup(u.Stop)
	etcd := "http://" + freeAddress(t)
	u.start(t, filepath.Join(dir, "etcd.log"), "etcd", "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+etcd, "--advertise-client-urls="+etcd, "--listen-peer-urls=http://"+freeAddress(t))
	address := freeAddress(t)
	u.URL = "https://" + address
	u.Anonymous = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} // it makes its own certificate
	u.Admin = &http.Client{Transport: asAdmin{u.Anonymous.Transport}}
	key, log := writeKey(t, dir), filepath.Join(dir, "kube-apiserver.log")
	_, port, err := net.SplitHostPort(address)
	must(t, err)
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--service-account-issuer=") }) {
		flags = append(flags, "--service-account-issuer=https://kubernetes.default.svc.cluster.local")
	}
	u.start(t, log, "kube-apiserver", append([]string{
		"--etcd-servers=" + etcd, "--bind-address=127.0.0.1", "--secure-port=" + port, "--cert-dir=" + filepath.Join(dir, "certs"),
		"--advertise-address=192.0.2.1", "--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-key-file=" + key, "--service-account-signing-key-file=" + key,
		"--authorization-mode=Node,RBAC", "--token-auth-file=" + writeTokens(t, dir, tokens),
	}, flags...)...)
	begun := time.Now()
	for ended := u.servers[1].ended; !u.ready(); {
		if isClosed(ended) || time.Since(begun) > patience {
			text, _ := os.ReadFile(log)
			t.Fatalf("kube-apiserver does not begin: %s", text[max(0, len(text)-4000):])
		}
		time.Sleep(100 * time.Millisecond)
	}
	must(t, u.learnRelease())
	return u
}

// Stop ends the servers, the newest first, so that what they write is whole.
func (u *Upstream) Stop() {
	for i := len(u.servers) - 1; i >= 0; i-- {
		_ = u.servers[i].Process.Signal(syscall.SIGTERM)
		<-u.servers[i].ended
	}
	u.servers = nil
}

func (u *Upstream) start(t testing.TB, log, program string, args ...string) {
	t.Helper()
	out, err := os.Create(log)
	must(t, err)
	defer out.Close()
	cmd := exec.Command(filepath.Join(record, program), args...)
	cmd.Stdout, cmd.Stderr = out, out
	must(t, cmd.Start())
	p := process{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	u.servers = append(u.servers, p)
}

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (u *Upstream) ready() bool {
	response, err := u.Admin.Get(u.URL + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// learnRelease notes of which release the answers are.
func (u *Upstream) learnRelease() error {
	response, err := u.Admin.Get(u.URL + "/version")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var v struct{ GitVersion string }
	err = json.NewDecoder(response.Body).Decode(&v)
	if parts := strings.Split(strings.TrimPrefix(v.GitVersion, "v"), "."); len(parts) > 2 {
		release = parts[0] + "." + parts[1]
	}
	return err
}

const adminToken = "the-recorder"

// writeTokens writes a file with the administrator's token and those of another file.
func writeTokens(t testing.TB, dir, others string) string {
	t.Helper()
	text := []byte(adminToken + `,kubernetes-admin,,"system:masters"` + "\n")
	if others != "" {
		more, err := os.ReadFile(others)
		must(t, err)
		text = append(text, more...)
	}
	path := filepath.Join(dir, "tokens.csv")
	must(t, os.WriteFile(path, text, 0o600))
	return path
}

// writeKey writes a new key for tokens of service accounts.
func writeKey(t testing.TB, dir string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	path := filepath.Join(dir, "sa.key")
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}), 0o600))
	return path
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// asAdmin gives requests without credentials those of an administrator.
type asAdmin struct{ http.RoundTripper }

func (a asAdmin) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Authorization") == "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+adminToken)
	}
	return a.RoundTripper.RoundTrip(r)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(fmt.Errorf("a kube-apiserver that records: %w", err))
	}
}
