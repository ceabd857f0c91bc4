package pki

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestPKIModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "pki")
	mustOpen(t, dir, nil)
	for name, want := range map[string]os.FileMode{
		"": 0o700, "ca.key": 0o600, "apiserver.key": 0o600, "admin.key": 0o600,
		"ca.crt": 0o644, "apiserver.crt": 0o644, "admin.crt": 0o644,
	} {
		if got := mode(t, filepath.Join(dir, name)); got != want {
			t.Errorf("mode of %q is %v, want %v", name, got, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 6 {
		t.Errorf("%d files in the directory, %v; want 6", len(entries), err)
	}
}

func TestPKITightensModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	mustOpen(t, dir, nil)
	key := filepath.Join(dir, "ca.key")
	for path, m := range map[string]os.FileMode{dir: 0o755, key: 0o644} {
		if err := os.Chmod(path, m); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, dir, nil)
	if got := mode(t, dir); got != 0o700 {
		t.Errorf("mode of the directory is %v", got)
	}
	if got := mode(t, key); got != 0o600 {
		t.Errorf("mode of the key is %v", got)
	}
}

func TestPKIKeptAndRenewed(t *testing.T) {
	type kept struct{ ca, serving, admin bool }
	tests := []struct {
		name  string
		later time.Duration
		names []string
		spoil string
		want  kept
	}{
		{"restart", 0, []string{"a.example"}, "", kept{true, true, true}},
		{"fewer names", 0, nil, "", kept{true, true, true}},
		{"a new name", 0, []string{"a.example", "b.example"}, "", kept{true, false, true}},
		{"a new address", 0, []string{"192.0.2.1"}, "", kept{true, false, true}},
		{"long before the end", 200 * day, nil, "", kept{true, true, true}},
		{"near the end", 300 * day, nil, "", kept{true, false, false}},
		{"after the end", 400 * day, nil, "", kept{true, false, false}},
		{"authority near its end", 3600 * day, nil, "", kept{false, false, false}},
		{"torn leaf", 0, nil, "admin.key", kept{true, true, false}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "pki")
			first := mustOpen(t, dir, []string{"a.example"})
			if tt.spoil != "" {
				if err := os.WriteFile(filepath.Join(dir, tt.spoil), first.ca.keyPEM, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			second, err := open(dir, tt.names, DefaultLives, func() time.Time { return time.Now().Add(tt.later) })
			if err != nil {
				t.Fatal(err)
			}
			same := func(a, b *pair) bool { return a.cert.Equal(b.cert) }
			got := kept{same(first.ca, second.ca), same(first.serving, second.serving), same(first.admin, second.admin)}
			if got != tt.want {
				t.Errorf("kept %+v, want %+v", got, tt.want)
			}
			checkPKI(t, second)
		})
	}
}

// An authority that is damaged stops the start, with a line that names the file, and
// what is left of it stays as it is.
func TestPKIDamagedAuthority(t *testing.T) {
	spoil := func(path string) error { return os.WriteFile(path, []byte("nonsense"), 0o600) }
	tests := []struct {
		file   string
		damage func(path string) error
		left   string
	}{
		{"ca.key", os.Remove, "ca.crt"},
		{"ca.crt", os.Remove, "ca.key"},
		{"ca.key", spoil, "ca.crt"},
		{"ca.crt", spoil, "ca.key"},
	}
	for _, tt := range tests {
		dir := filepath.Join(t.TempDir(), "pki")
		mustOpen(t, dir, nil)
		before := read(t, filepath.Join(dir, tt.left))
		path := filepath.Join(dir, tt.file)
		if err := tt.damage(path); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, nil)
		if err == nil {
			t.Errorf("%s: an authority was replaced without a word", tt.file)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, path) || strings.Contains(text, filepath.Join(dir, tt.left)) ||
			!strings.Contains(text, "remove the directory "+dir) || strings.Contains(text, "\n") {
			t.Errorf("%s: %v", tt.file, err)
		}
		if after := read(t, filepath.Join(dir, tt.left)); after != before {
			t.Errorf("%s was changed", tt.left)
		}
	}
}

// A first start that was killed between the authority's two files is no lost authority.
func TestPKIBegunAndNotFinished(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	first := mustOpen(t, dir, nil)
	for _, name := range []string{"ca.crt", "apiserver.crt", "apiserver.key", "admin.crt", "admin.key"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if second := mustOpen(t, dir, nil); second.ca.cert.Equal(first.ca.cert) {
		t.Error("the certificate came back from nowhere")
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestRenewWhileRunning(t *testing.T) {
	now := time.Now()
	p, err := open("", nil, DefaultLives, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	if made := p.Made(); !slices.Equal(made, []string{"ca", "apiserver", "admin"}) {
		t.Errorf("made %v", made)
	}
	if changed, err := p.Renew(); changed || err != nil {
		t.Errorf("Renew at once: %v, %v", changed, err)
	}
	if made := p.Made(); made != nil {
		t.Errorf("made %v at once", made)
	}
	before, _ := p.Admin()
	now = now.Add(300 * 24 * time.Hour)
	if changed, err := p.Renew(); !changed || err != nil {
		t.Errorf("Renew near the end: %v, %v", changed, err)
	}
	if made := p.Made(); !slices.Equal(made, []string{"apiserver", "admin"}) {
		t.Errorf("made %v near the end", made)
	}
	if after, _ := p.Admin(); string(after) == string(before) {
		t.Error("the admin's certificate is the old one")
	}
	checkPKI(t, p)
}

// A server whose authority is near its end and cannot be written keeps the one that it has.
func TestRenewCannotWriteAuthority(t *testing.T) {
	now, dir := time.Now(), filepath.Join(t.TempDir(), "pki")
	p, err := open(dir, nil, DefaultLives, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	before := string(p.CA())
	now = now.Add(3600 * day)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := p.Renew(); err == nil {
			t.Error("an authority was renewed that could not be written")
		}
		if after := string(p.CA()); after != before {
			t.Error("the authority is another one")
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Renew(); err != nil || string(p.CA()) == before {
		t.Errorf("the authority was not renewed: %v", err)
	}
	checkPKI(t, p)
}

func mustOpen(t *testing.T, dir string, names []string) *PKI {
	t.Helper()
	p, err := Open(dir, names)
	if err != nil {
		t.Fatal(err)
	}
	checkPKI(t, p)
	return p
}

// checkPKI asserts what holds of every PKI.
func checkPKI(t *testing.T, p *PKI) {
	t.Helper()
	for _, name := range p.names {
		_, err := p.serving.cert.Verify(x509.VerifyOptions{Roots: p.ClientCAs(), DNSName: name, CurrentTime: p.now()})
		if err != nil {
			t.Errorf("serving certificate for %s: %v", name, err)
		}
	}
	_, err := p.admin.cert.Verify(x509.VerifyOptions{
		Roots: p.ClientCAs(), CurrentTime: p.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		t.Errorf("admin certificate: %v", err)
	}
}

func mode(t *testing.T, path string) os.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode().Perm()
}
