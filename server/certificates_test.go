package server

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/plinth-io/plinth/server/apitest"
	"github.com/plinth-io/plinth/server/pki"
)

func TestDataDir(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var kubeconfigs []string
	for range 2 {
		s := New(Config{DataDir: dir, SANs: []string{"192.0.2.10", " plinth.example.com"}, Linger: time.Millisecond})
		if err := s.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", s.KubeconfigPath())
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != s.URL() || strings.HasSuffix(config.Host, ":0") {
			t.Errorf("kubeconfig points at %s, the server is at %s", config.Host, s.URL())
		}
		config.ServerName = "plinth.example.com"
		client := kubernetes.NewForConfigOrDie(config)
		if _, err := client.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		kubeconfigs = append(kubeconfigs, string(config.CertData))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if kubeconfigs[0] != kubeconfigs[1] {
		t.Error("the admin's certificate changed with a restart")
	}
}

// TestCertificatesRenewed runs a server longer than its certificates live. All of them are
// renewed in time: that of the listener, the admin's with the kubeconfig, and those that the server
// shows to kubelets and to extension servers. The old ones end.
func TestCertificatesRenewed(t *testing.T) {
	for unit := time.Second; ; unit *= 2 {
		slowest, err := outliveCertificates(t, unit)
		if err == nil {
			return
		}
		if slowest < unit/2 || unit > 10*time.Second {
			t.Fatal(err)
		}
		t.Logf("once more with longer lives, since the machine stood still for %v: %v", slowest, err)
	}
}

// outliveCertificates runs a server that renews certificates two units before their end, for longer
// than they live. It also returns how long the slowest look at them took.
func outliveCertificates(t *testing.T, unit time.Duration) (slowest time.Duration, err error) {
	s := New(Config{DataDir: filepath.Join(t.TempDir(), "data"), Linger: time.Millisecond, Controllers: []string{}})
	s.certificateLives = pki.Lives{Authority: 6 * unit, Certificate: 4 * unit, RenewBefore: 2 * unit}
	s.certificatesEvery = 20 * time.Millisecond
	begun := time.Now()
	look := begun
	measure := func() { slowest, look = max(slowest, time.Since(look)), time.Now() }
	defer measure()
	if err := s.Open(t.Context()); err != nil {
		measure()
		return slowest, err
	}
	defer s.Close()
	first, err := shown(s)
	if err != nil {
		measure()
		return slowest, err
	}
	authority := s.pki.CA()
	old, err := clientcmd.BuildConfigFromFlags("", s.KubeconfigPath())
	must(t, err)
	renewed := map[string]bool{}
	for ; time.Since(begun) < 9*unit; time.Sleep(50 * time.Millisecond) {
		measure()
		config, err := clientcmd.BuildConfigFromFlags("", s.KubeconfigPath())
		must(t, err)
		_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		if err != nil {
			measure()
			return slowest, fmt.Errorf("with the kubeconfig of now, after %v: %w", time.Since(begun), err)
		}
		now, err := shown(s)
		must(t, err)
		for name, der := range first {
			renewed[name] = renewed[name] || !bytes.Equal(der, now[name])
		}
	}
	measure()
	if len(renewed) != 4 || !renewed["listener"] || !renewed["admin"] || !renewed["kubelets"] || !renewed["extensions"] {
		return slowest, fmt.Errorf("renewed: %v", renewed)
	}
	if bytes.Equal(authority, s.pki.CA()) {
		return slowest, errors.New("the authority was not renewed")
	}
	old.CAData = s.pki.CA()
	if _, err := kubernetes.NewForConfigOrDie(old).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); !apierrors.IsUnauthorized(err) {
		measure()
		return slowest, fmt.Errorf("with a certificate that has ended: %w", err)
	}
	return slowest, nil
}

// shown are the certificates that a server shows to others, and the admin's.
func shown(s *Server) (map[string][]byte, error) {
	conn, err := tls.Dial("tcp", s.host(), &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	kubelets, err1 := s.pki.Kubelet()
	extensions, err2 := s.pki.FrontProxy()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	admin, _ := s.pki.Admin()
	return map[string][]byte{
		"listener": conn.ConnectionState().PeerCertificates[0].Raw, "admin": admin,
		"kubelets": kubelets.Certificate[0], "extensions": extensions.Certificate[0],
	}, nil
}

// locked is a writer for several goroutines.
type locked struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// TestCertificatesTakenUp renews the files of a running server.
func TestCertificatesTakenUp(t *testing.T) {
	var logged strings.Builder
	var mu sync.Mutex
	s := New(Config{DataDir: filepath.Join(t.TempDir(), "data"), Linger: time.Millisecond, Controllers: []string{},
		Log: slog.New(slog.NewTextHandler(&locked{mu: &mu, w: &logged}, nil))})
	s.certificatesEvery = 5 * time.Millisecond
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first, err := shown(s)
	must(t, err)
	old := s.RESTConfig()
	dir := filepath.Join(s.config.DataDir, "pki")
	list, err := pki.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pki.RenewFiles(dir, append(pki.Renewable(list), "ca")); err != nil {
		t.Fatal(err)
	}
	apitest.Eventually(t, "all certificates are taken up", func() bool {
		now, err := shown(s)
		must(t, err)
		for name, der := range now {
			if bytes.Equal(der, first[name]) {
				return false
			}
		}
		return true
	})
	apitest.Eventually(t, "the kubeconfig has the new certificate", func() bool {
		config, err := clientcmd.BuildConfigFromFlags("", s.KubeconfigPath())
		if err != nil {
			t.Fatal(err)
		}
		admin, _ := s.pki.Admin()
		_, err = kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
		return bytes.Equal(config.CertData, admin) && bytes.Equal(config.CAData, s.pki.CA()) && err == nil
	})
	// The authority has kept its key: the client of before still trusts and is let in.
	if _, err := kubernetes.NewForConfigOrDie(old).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(logged.String(), "took up certificates") {
		t.Errorf("logged %s", &logged)
	}
}

// Certificates that are made at their first use are logged then, not when others are renewed.
func TestCertificatesLogged(t *testing.T) {
	var lines apitest.Lines
	s := New(Config{DataDir: filepath.Join(t.TempDir(), "data"), Linger: time.Millisecond, Controllers: []string{}, Log: lines.Log()})
	s.certificatesEvery = 5 * time.Millisecond
	if err := s.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.pki.Kubelet(); err != nil {
		t.Fatal(err)
	}
	lines.Wait(t, "made certificates.*apiserver-kubelet-client")
}
