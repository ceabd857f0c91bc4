package pki

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// TestAuthority signs a client certificate with the authority that a server has made.
func TestAuthority(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	if _, err := ReadAuthority(dir); !errors.Is(err, ErrNoAuthority) {
		t.Errorf("without a directory: %v", err)
	}
	if _, err := List(dir); !errors.Is(err, ErrNoAuthority) || exists(dir) {
		t.Errorf("without a directory: %v; it was made: %v", err, exists(dir))
	}
	p := mustOpen(t, dir, nil)
	a, err := ReadAuthority(dir)
	if err != nil || !bytes.Equal(a.PEM(), p.CA()) {
		t.Fatal(err)
	}
	for life, want := range map[time.Duration]time.Time{day: time.Now().Add(day), 9999 * day: a.End()} {
		cert, key, err := a.Client("ann", []string{"dev", "qa"}, life)
		if err != nil {
			t.Fatal(err)
		}
		made, err := parsePair(cert, key)
		if err != nil {
			t.Fatal(err)
		}
		if s := made.cert.Subject; s.CommonName != "ann" || !slices.Equal(slices.Sorted(slices.Values(s.Organization)), []string{"dev", "qa"}) {
			t.Errorf("subject %s", s)
		}
		if off := made.cert.NotAfter.Sub(want).Abs(); off > time.Minute || made.cert.CheckSignatureFrom(p.ca.cert) != nil {
			t.Errorf("ends %v off", off)
		}
	}
	if err := os.Remove(filepath.Join(dir, "ca.key")); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadAuthority(dir); err == nil || !strings.Contains(err.Error(), "ca.key") {
		t.Errorf("without its key: %v", err)
	}
}

// TestRenewFiles renews certificates beside a PKI that is in use, which takes them up.
func TestRenewFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p := mustOpen(t, dir, []string{"a.example", "192.0.2.1"})
	if _, err := p.Kubelet(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Peer(); err != nil {
		t.Fatal(err)
	}
	if p.Due() {
		t.Error("there is something to do at once")
	}
	before := map[string]*pair{}
	for name, pair := range p.pairs() {
		before[name] = pair
	}
	list, err := List(dir)
	if err != nil || !slices.Equal(Renewable(list), []string{"apiserver", "admin", "apiserver-kubelet-client", "apiserver-peer-client"}) {
		t.Fatalf("%v, %v", list, err)
	}
	ends, err := RenewFiles(dir, []string{"ca", "apiserver", "admin", "apiserver-kubelet-client", "apiserver-peer-client"})
	if err != nil || len(ends) != 5 {
		t.Fatalf("%v, %v", ends, err)
	}
	if !p.Due() {
		t.Error("the new files were not noticed")
	}
	if changed, err := p.Renew(); err != nil || !changed || p.Due() {
		t.Errorf("changed: %v, %v", changed, err)
	}
	if got := p.Taken(); len(got) != 5 || len(p.Made()) != 5 { // made at first
		t.Errorf("taken up: %v", got)
	}
	for name, end := range ends {
		now, old := p.pairs()[name], before[name]
		if now.cert.Equal(old.cert) || !now.cert.NotAfter.Equal(end) || now.cert.Subject.String() != old.cert.Subject.String() {
			t.Errorf("%s: %s until %v", name, now.cert.Subject, now.cert.NotAfter)
		}
		if same := bytes.Equal(now.keyPEM, old.keyPEM); same != (name == authority) {
			t.Errorf("%s has kept its key: %v", name, same)
		}
		if old.cert.CheckSignatureFrom(p.ca.cert) != nil {
			t.Errorf("the old %s is not signed by the new authority", name)
		}
	}
	checkPKI(t, p)
	for _, file := range []string{"ca.key", "admin.key"} {
		if got := mode(t, filepath.Join(dir, file)); got != 0o600 {
			t.Errorf("mode of %s is %v", file, got)
		}
	}
}

// TestSpoiledWhileRunning spoils files of a PKI that is in use, which goes on with what it has.
func TestSpoiledWhileRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	p := mustOpen(t, dir, nil)
	ca, admin := p.CA(), p.admin
	for _, file := range []string{"ca.crt", "admin.key", "apiserver.crt"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte("nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if changed, err := p.Renew(); changed || err != nil || !bytes.Equal(p.CA(), ca) || p.admin != admin {
		t.Errorf("changed: %v, %v", changed, err)
	}
	list, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		if c.Err == nil {
			t.Errorf("%s is shown as good", c.Name)
		}
	}
}

func TestRefreshKubeconfig(t *testing.T) {
	data := t.TempDir()
	dir, path := filepath.Join(data, "pki"), filepath.Join(data, "kubeconfig")
	p := mustOpen(t, dir, nil)
	if err := RefreshKubeconfig(path, dir); err != nil || exists(path) {
		t.Errorf("without a kubeconfig: %v", err)
	}
	if err := p.WriteKubeconfig(path, "https://127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if _, err := RenewFiles(dir, []string{"admin"}); err != nil {
		t.Fatal(err)
	}
	if err := RefreshKubeconfig(path, dir); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil || config.Host != "https://127.0.0.1:1" || string(config.CertData) != read(t, filepath.Join(dir, "admin.crt")) {
		t.Errorf("%v, %v", config, err)
	}
}
