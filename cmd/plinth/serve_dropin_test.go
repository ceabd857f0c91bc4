package main

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/plinth-io/plinth/cmd/plinth/kubectltest"
)

// TestEnvtest runs testdata/envtest, a test suite on controller-runtime's envtest, with the programs
// of plinth test-assets: definition, webhooks, AddUser, kubectl, and a second environment.
func TestEnvtest(t *testing.T) {
	t.Parallel()
	assets := newAssets(t)
	kubectl, err := kubectltest.Path()
	must(t, err)
	link := filepath.Join(assets, "kubectl")
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	must(t, os.Symlink(kubectl, link))
	suite := filepath.Join(t.TempDir(), "suite.test")
	must(t, buildModule(filepath.Join("testdata", "envtest"), suite, "test", "-vet=off", "-c"))
	for {
		out, err := runSuite(t, suite, assets)
		if err != nil && (strings.Contains(out, "address already in use") || strings.Contains(out, "default namespace didn't register")) {
			continue // somebody else took the port that envtest chose, or its five seconds were too short
		}
		if err != nil {
			t.Errorf("%v:\n%s", err, out)
		}
		for _, line := range strings.Split(out, "\n") {
			if strings.HasPrefix(line, "the environment started in ") {
				t.Log(line)
			}
		}
		return
	}
}

func runSuite(t *testing.T, suite, assets string) (out string, err error) {
	cmd := exec.Command(suite, "-test.v")
	cmd.Dir = filepath.Join("testdata", "envtest")
	cmd.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+assets, "KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT=true",
		"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=2m", "HOME="+t.TempDir(), "XDG_CACHE_HOME="+t.TempDir())
	text, err := cmd.CombinedOutput()
	return string(text), err
}

// jenvtestEtcd and jenvtestAPIServer are the argument lists of jenvtest
// (core/src/main/java/io/javaoperatorsdk/jenvtest/process), where dir has its certificates.
func jenvtestEtcd(data, wal, port, peer string) []string {
	return []string{
		"-data-dir", data, "-wal-dir", wal,
		"--listen-client-urls", "http://0.0.0.0:" + port, "--advertise-client-urls", "http://0.0.0.0:" + port,
		"--initial-cluster", "default=http://localhost:" + peer, "--initial-advertise-peer-urls", "http://localhost:" + peer,
		"--listen-peer-urls", "http://localhost:" + peer,
	}
}

func jenvtestAPIServer(dir, port, etcd string) []string {
	key, cert := filepath.Join(dir, "apiserver.key"), filepath.Join(dir, "apiserver.crt")
	return []string{
		"--cert-dir", dir, "--secure-port", port, "--etcd-servers", "http://0.0.0.0:" + etcd, "--authorization-mode", "RBAC",
		"--service-account-issuer", "https://localhost", "--service-account-signing-key-file", key,
		"--service-account-signing-key-file", key, "--service-account-key-file", key, "--service-account-issuer", cert,
		"--disable-admission-plugins", "ServiceAccount", "--client-ca-file", filepath.Join(dir, "client.crt"),
		"--service-cluster-ip-range", "10.0.0.0/24", "--allow-privileged",
	}
}

// TestJenvtest starts both programs as jenvtest does: at once, with certificates that have signed
// themselves.
func TestJenvtest(t *testing.T) {
	t.Parallel()
	assets, dir, port, etcd := newAssets(t), t.TempDir(), freePort(t), freePort(t)
	signed(t, dir, "apiserver", x509.Certificate{Subject: subjectOf("example.org"), IPAddresses: local, DNSNames: kubernetesNames}, "")
	signed(t, dir, "client", x509.Certificate{Subject: subjectOf("jenvtest", "system:masters")}, "")
	server := startAsset(t, filepath.Join(assets, apiServerName), jenvtestAPIServer(dir, port, etcd)...)
	store := startAsset(t, filepath.Join(assets, etcdName), jenvtestEtcd(t.TempDir(), t.TempDir(), etcd, "1")...)
	store.ready("http://127.0.0.1:" + etcd + "/health")
	server.ready("https://127.0.0.1:" + port + "/readyz")
	testEtcd(t, etcd)
	client := clientOf(t, port, dir, "client", "apiserver")
	if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	// Without a service account, which nothing makes.
	privileged := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "c", Image: "i", SecurityContext: &corev1.SecurityContext{Privileged: &privileged}},
	}}}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	server.stop()
	store.stop()
}

// testEtcd has a client of etcd write a key, which the kube-apiserver has nothing to do with.
func testEtcd(t *testing.T, port string) {
	t.Helper()
	ctx := withPatience(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:" + port}, DialTimeout: patience})
	must(t, err)
	defer client.Close()
	_, err = client.Put(ctx, "a", "1")
	must(t, err)
	got, err := client.Get(ctx, "", clientv3.WithPrefix())
	must(t, err)
	if len(got.Kvs) != 1 || got.Header.Revision != 2 {
		t.Errorf("the keys are %v", got)
	}
}

// kwokctlEtcd and kwokctlAPIServer are the argument lists of kwokctl's runtime binary
// (sigs.k8s.io/kwok/pkg/kwokctl/components), where dir has its certificates.
func kwokctlEtcd(data, port, peer string) []string {
	return []string{
		"--name=node0", "--auto-compaction-retention=1", "--quota-backend-bytes=8589934592", "--data-dir=" + data,
		"--initial-advertise-peer-urls=http://0.0.0.0:" + peer, "--listen-peer-urls=http://0.0.0.0:" + peer,
		"--advertise-client-urls=http://0.0.0.0:" + port, "--listen-client-urls=http://0.0.0.0:" + port,
		"--initial-cluster=node0=http://0.0.0.0:" + peer,
	}
}

func kwokctlAPIServer(dir, port, etcd string, more ...string) []string {
	crt, key := filepath.Join(dir, "admin.crt"), filepath.Join(dir, "admin.key")
	return append([]string{
		"--etcd-prefix=/registry", "--allow-privileged=true",
		"--max-requests-inflight=0", "--max-mutating-requests-inflight=0", "--enable-priority-and-fairness=false",
		"--etcd-servers=http://127.0.0.1:" + etcd, "--authorization-mode=Node,RBAC",
		"--bind-address=0.0.0.0", "--secure-port=" + port, "--tls-cert-file=" + crt, "--tls-private-key-file=" + key,
		"--client-ca-file=" + filepath.Join(dir, "ca.crt"), "--service-account-key-file=" + key,
		"--service-account-signing-key-file=" + key, "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--proxy-client-key-file=" + key, "--proxy-client-cert-file=" + crt,
	}, more...)
}

// TestKwokctl starts both programs as kwokctl does. A server that is started again has its objects,
// and one with another prefix has none of them.
func TestKwokctl(t *testing.T) {
	t.Parallel()
	assets, dir, port, etcd := newAssets(t), t.TempDir(), freePort(t), freePort(t)
	signed(t, dir, "ca", x509.Certificate{Subject: subjectOf("kwok-ca"), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, "")
	signed(t, dir, "admin", x509.Certificate{
		Subject: subjectOf("kwok-admin", "system:masters"), IPAddresses: local, DNSNames: kubernetesNames,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageAny, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, "ca")
	store := startAsset(t, filepath.Join(assets, etcdName), kwokctlEtcd(t.TempDir(), etcd, "1")...)
	store.ready("http://127.0.0.1:" + etcd + "/health")
	client := clientOf(t, port, dir, "admin", "ca")
	serve := func(more ...string) *assetProcess {
		a := startAsset(t, filepath.Join(assets, apiServerName), kwokctlAPIServer(dir, port, etcd, more...)...)
		a.await(func() bool { // as kwokctl's kubectl get --raw /healthz
			body, err := client.RESTClient().Get().AbsPath("/healthz").DoRaw(t.Context())
			return err == nil && string(body) == "ok"
		})
		return a
	}
	server := serve()
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}
	_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), settings, metav1.CreateOptions{})
	must(t, err)
	server.stop()
	if warned := strings.Count(server.stderr.String(), "these flags have no effect on plinth flags=--proxy-client-key-file,--proxy-client-cert-file"); warned != 1 {
		t.Errorf("%d warnings of flags without effect", warned)
	}
	server = serve()
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "settings", metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	server.stop()
	serve("--etcd-prefix=/other", "--admission-control=").stop()
	server = serve("--etcd-prefix=/other")
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "settings", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("with another prefix: %v", err)
	}
	server.stop()
}

// TestAPIServerCertificate has the server make the certificate in --cert-dir, which its clients then
// trust, and keep it.
func TestAPIServerCertificate(t *testing.T) {
	t.Parallel()
	assets, dir, port, etcd := newAssets(t), filepath.Join(t.TempDir(), "made"), freePort(t), freePort(t)
	startAsset(t, filepath.Join(assets, etcdName), "--data-dir="+t.TempDir(), "--unsafe-no-fsync", "--listen-client-urls=http://127.0.0.1:"+etcd)
	pki := t.TempDir()
	signed(t, pki, "client", x509.Certificate{Subject: subjectOf("jane")}, "")
	args := []string{"--cert-dir=" + dir, "--secure-port=" + port, "--bind-address=127.0.0.1", "--etcd-servers=http://127.0.0.1:" + etcd, "--client-ca-file=" + filepath.Join(pki, "client.crt")}
	var before []byte
	for range 2 {
		server := startAsset(t, filepath.Join(assets, apiServerName), args...)
		server.await(func() bool {
			_, err := os.Stat(filepath.Join(dir, "apiserver.key"))
			return err == nil
		})
		made, err := os.ReadFile(filepath.Join(dir, "apiserver.crt"))
		must(t, err)
		must(t, os.WriteFile(filepath.Join(pki, "apiserver.crt"), made, 0o600))
		client := clientOf(t, port, pki, "client", "apiserver")
		server.await(func() bool { // jane may do everything, for want of a mode
			_, err := client.CoreV1().Secrets("kube-system").List(t.Context(), metav1.ListOptions{})
			return err == nil
		})
		server.stop()
		if before != nil && string(made) != string(before) {
			t.Error("the certificate was made anew")
		}
		before = made
	}
}

// TestDropInFailures has starts that cannot succeed: each ends with one line that says what to do.
func TestDropInFailures(t *testing.T) {
	t.Parallel()
	assets := newAssets(t)
	apiServer := filepath.Join(assets, apiServerName)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"etcdserver":"3.5.21","etcdcluster":"3.5.0"}`)
	}))
	defer other.Close()
	etcd, port := freePort(t), freePort(t)
	startAsset(t, filepath.Join(assets, etcdName), "--data-dir="+t.TempDir(), "--listen-client-urls=http://127.0.0.1:"+etcd)
	half := t.TempDir()
	must(t, os.WriteFile(filepath.Join(half, "apiserver.crt"), nil, 0o600))
	for want, args := range map[string][]string{
		"kube-apiserver: --etcd-servers " + other.URL + ": not plinth's: it is etcd 3.5.21; start the etcd that plinth test-assets has put beside this kube-apiserver": {"--etcd-servers=" + other.URL, "--cert-dir=" + t.TempDir()},
		"kube-apiserver: --etcd-servers is missing; write the URL": {"--cert-dir=" + t.TempDir()},
		"--cert-dir " + half + ": error reading":                   {"--etcd-servers=http://127.0.0.1:" + etcd, "--cert-dir=" + half},
		"--etcd-servers: http://127.0.0.1:1 does not answer: ":     {"--etcd-servers=http://127.0.0.1:1", "--storage-initialization-timeout=1ms", "--cert-dir=" + t.TempDir()},
		"--feature-gates: unrecognized feature gate: Nonsense":     {"--etcd-servers=http://127.0.0.1:" + etcd, "--feature-gates=Nonsense=true"},
		`admission-plugins: plugin "Nope" is unknown`:              {"--etcd-servers=http://127.0.0.1:" + etcd, "--cert-dir=" + t.TempDir(), "--secure-port=" + port, "--enable-admission-plugins=Nope"},
		"--bind-address and --secure-port ":                        {"--etcd-servers=http://127.0.0.1:" + etcd, "--cert-dir=" + t.TempDir(), "--secure-port=" + etcd},
	} {
		if line := startAsset(t, apiServer, args...).fails(); !strings.Contains(line, want) {
			t.Errorf("%v: %s; want %s", args, line, want)
		}
	}
	// A server that waits for etcd can be stopped.
	waiting := startAsset(t, apiServer, "--etcd-servers=http://127.0.0.1:1", "--cert-dir="+filepath.Join(half, "made"))
	waiting.await(func() bool {
		_, err := os.Stat(filepath.Join(half, "made", "apiserver.key"))
		return err == nil
	})
	waiting.stop()
	// A second server on the same database is refused.
	args := []string{"--etcd-servers=http://127.0.0.1:" + etcd, "--cert-dir=" + t.TempDir(), "--bind-address=127.0.0.1", "--authorization-mode=RBAC"}
	first := startAsset(t, apiServer, append(args, "--secure-port="+port)...)
	first.ready("https://127.0.0.1:" + port + "/readyz")
	second := startAsset(t, apiServer, append(args, "--secure-port="+freePort(t))...)
	if line := second.fails(); !strings.Contains(line, "plinth.db") {
		t.Errorf("a second server: %s", line)
	}
	first.stop()
}

// TestDropInStart logs how long both programs take to be ready, one after the other.
func TestDropInStart(t *testing.T) {
	assets, dir, port, etcd := newAssets(t), t.TempDir(), freePort(t), freePort(t)
	begun := time.Now()
	store := startAsset(t, filepath.Join(assets, etcdName), "--data-dir="+t.TempDir(), "--unsafe-no-fsync=true", "--listen-client-urls=http://127.0.0.1:"+etcd)
	store.ready("http://127.0.0.1:" + etcd + "/health")
	ready := time.Since(begun)
	server := startAsset(t, filepath.Join(assets, apiServerName), "--etcd-servers=http://127.0.0.1:"+etcd, "--cert-dir="+dir, "--bind-address=127.0.0.1", "--secure-port="+port, "--authorization-mode=RBAC")
	server.ready("https://127.0.0.1:" + port + "/readyz")
	t.Logf("etcd was ready after %v, kube-apiserver after %v more", ready, time.Since(begun)-ready)
	server.stop()
	store.stop()
}
