package main

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

// newAssets makes a directory by plinth test-assets.
func newAssets(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if code, out := runPlinth(t, "test-assets", dir); code != 0 {
		t.Fatal(out)
	}
	return dir
}

// assetProcess is a running program of a directory of newAssets.
type assetProcess struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	stderr bytes.Buffer
	ended  chan struct{} // closed when it has
}

func startAsset(t *testing.T, program string, args ...string) *assetProcess {
	t.Helper()
	a := &assetProcess{t: t, name: filepath.Base(program), cmd: exec.Command(program, args...), ended: make(chan struct{})}
	a.cmd.Dir = t.TempDir()
	a.cmd.Stderr = &a.stderr
	must(t, a.cmd.Start())
	go func() {
		_ = a.cmd.Wait()
		close(a.ended)
	}()
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		if <-a.ended; t.Failed() {
			t.Logf("%s:\n%s", a.name, &a.stderr)
		}
	})
	return a
}

// ready waits until url answers 200, as all programs that start an asset do.
func (a *assetProcess) ready(url string) {
	a.t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	a.await(func() bool {
		resp, err := client.Get(url)
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// await waits until condition holds, as long as the asset runs.
func (a *assetProcess) await(condition func() bool) {
	a.t.Helper()
	for !condition() {
		select {
		case <-a.ended:
			a.t.Fatalf("%s ended with %v", a.name, a.cmd.ProcessState)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop ends the asset with SIGTERM; it must exit with 0.
func (a *assetProcess) stop() {
	a.t.Helper()
	must(a.t, a.cmd.Process.Signal(syscall.SIGTERM))
	if <-a.ended; !a.cmd.ProcessState.Success() {
		a.t.Errorf("%s ended with %v", a.name, a.cmd.ProcessState)
	}
}

// fails waits for the end of an asset that cannot start, and returns what it wrote last.
func (a *assetProcess) fails() string {
	a.t.Helper()
	if <-a.ended; a.cmd.ProcessState.Success() {
		a.t.Errorf("%s ended with %v", a.name, a.cmd.ProcessState)
	}
	lines := bytes.Split(bytes.TrimSpace(a.stderr.Bytes()), []byte("\n"))
	return string(lines[len(lines)-1])
}

// signed writes NAME.crt and NAME.key, signed by the certificate of issuer, or by itself without
// one. Both jenvtest and kwokctl make RSA keys.
func signed(t *testing.T, dir, name string, template x509.Certificate, issuer string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	template.SerialNumber = big.NewInt(time.Now().UnixMilli())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := &template, any(key)
	if issuer != "" {
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, issuer+".crt"), filepath.Join(dir, issuer+".key"))
		must(t, err)
		parent, signer = pair.Leaf, pair.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, parent, key.Public(), signer)
	must(t, err)
	write := func(suffix, kind string, der []byte) {
		must(t, os.WriteFile(filepath.Join(dir, name+suffix), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	}
	write(".crt", "CERTIFICATE", der)
	write(".key", "RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key))
}

var (
	local           = []net.IP{net.IPv4(127, 0, 0, 1)}
	kubernetesNames = []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"}
)

// clientOf is a client with the certificate of name, which trusts that of ca.
func clientOf(t *testing.T, port, dir, name, ca string) *kubernetes.Clientset {
	t.Helper()
	read := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		return text
	}
	c := &clientrest.Config{Host: "https://127.0.0.1:" + port, QPS: -1}
	c.CertData, c.KeyData, c.CAData = read(name+".crt"), read(name+".key"), read(ca+".crt")
	client, err := kubernetes.NewForConfig(c)
	must(t, err)
	return client
}

func subjectOf(user string, groups ...string) pkix.Name {
	return pkix.Name{CommonName: user, Organization: groups}
}
