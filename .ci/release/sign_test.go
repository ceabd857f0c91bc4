package main

import (
	"bytes"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
)

// TestSignature verifies the signature of the checksums, by minisign itself, and the checksums of all files.
func TestSignature(t *testing.T) {
	r := made(t)
	cmd := exec.Command(needs(t, "minisign", "minisign"), "-V", "-p", product+".pub", "-m", checksums)
	cmd.Dir = r.dist
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Trusted comment: plinth "+r.version+"\n") {
		t.Errorf("minisign: %v: %s", err, out)
	}
	cmd = exec.Command("sha256sum", "--check", "--strict", checksums)
	cmd.Dir = r.dist
	if out, err = cmd.CombinedOutput(); err != nil {
		t.Errorf("sha256sum: %v: %s", err, out)
	}
	entries, err := os.ReadDir(r.dist)
	must(t, err)
	if lines := strings.Count(string(out), "\n"); lines != len(entries)-2 {
		t.Errorf("%d files of %d have checksums, all but two should", lines, len(entries))
	}
}

// TestSigningKey signs with a key of a file, also with an encrypted one.
func TestSigningKey(t *testing.T) {
	_, key, err := minisign.GenerateKey(rand.Reader)
	must(t, err)
	plain, err := key.MarshalText()
	must(t, err)
	encrypted, err := minisign.EncryptKey("the password", key)
	must(t, err)
	for name, text := range map[string][]byte{"plain": plain, "encrypted": encrypted} {
		file := filepath.Join(t.TempDir(), "key")
		must(t, os.WriteFile(file, text, 0o600))
		t.Setenv(keyVariable, file)
		t.Setenv(passwordVariable, "the password")
		if read, err := signingKey(); err != nil || !read.Equal(key) {
			t.Errorf("%s: %v", name, err)
		}
	}
	t.Setenv(passwordVariable, "another")
	if _, err := signingKey(); err == nil || !strings.Contains(err.Error(), passwordVariable) {
		t.Errorf("with another password: %v", err)
	}
	t.Setenv(keyVariable, filepath.Join(t.TempDir(), "missing"))
	if _, err := signingKey(); err == nil {
		t.Error("a key that is missing was replaced by another")
	}
}

// TestInstaller installs from a server that has the release, with each of the programs that can verify and download, and from
// servers that have something else.
func TestInstaller(t *testing.T) {
	r := made(t)
	needs(t, "minisign", "minisign")
	needs(t, "busybox", "busybox")
	needs(t, "wget", "wget")
	good := serve(t, r.dist)
	for name, without := range map[string]string{"minisign": "none", "openssl": "minisign", "wget": "curl"} {
		t.Run(name, func(t *testing.T) {
			prefix := filepath.Join(t.TempDir(), "prefix")
			out, err := installer(r, without, "--from", good, "--prefix", prefix)
			if err != nil || !strings.Contains(out, "\nplinth "+r.version+" (") || !strings.Contains(out, "is not in PATH") {
				t.Fatalf("%v: %s", err, out)
			}
			for _, path := range []string{"bin/plinth", "share/man/man1/plinth-serve.1", "share/bash-completion/completions/plinth"} {
				wantThere(t, prefix, path, true)
			}
			t.Logf("install.sh says:\n%s", out)
		})
	}
	p, err := here()
	must(t, err)
	archive := r.archiveName(p) + ".tar.gz"
	for _, bad := range []struct {
		name, without, want string
		change              func(dir string) // of a copy of the release
	}{
		{"archive", "none", "checksum of " + archive + " is wrong", func(dir string) { spoil(t, filepath.Join(dir, archive)) }},
		{"checksums", "none", "signature of SHA256SUMS is not one", func(dir string) { spoil(t, filepath.Join(dir, checksums)) }},
		{"checksums/openssl", "minisign", "signature of SHA256SUMS is not one", func(dir string) { spoil(t, filepath.Join(dir, checksums)) }},
		{"key", "none", "signature of SHA256SUMS is not one", func(dir string) { signAgain(t, dir) }},
		{"key/openssl", "minisign", "signature of SHA256SUMS is not one", func(dir string) { signAgain(t, dir) }},
		{"comment/openssl", "minisign", "signature of SHA256SUMS is not one", func(dir string) {
			file := filepath.Join(dir, checksums+".minisig")
			text, err := os.ReadFile(file)
			must(t, err)
			must(t, os.WriteFile(file, bytes.Replace(text, []byte("plinth v"), []byte("plinth w"), 1), 0o644))
		}},
		{"missing", "none", "cannot be downloaded", func(dir string) { must(t, os.Remove(filepath.Join(dir, archive))) }},
	} {
		t.Run(bad.name, func(t *testing.T) {
			dir, prefix := t.TempDir(), filepath.Join(t.TempDir(), "prefix")
			for _, file := range []string{archive, checksums, checksums + ".minisig"} {
				said(t, "cp", filepath.Join(r.dist, file), dir)
			}
			bad.change(dir)
			out, err := installer(r, bad.without, "--from", serve(t, dir), "--prefix", prefix)
			if err == nil || !strings.Contains(out, bad.want) {
				t.Errorf("%v: %s; want %s", err, out, bad.want)
			}
			wantThere(t, prefix, "bin", false)
		})
	}
}

func serve(t *testing.T, dir string) string {
	t.Helper()
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	return server.URL
}

// installer runs install.sh of the release by the smallest shell there is, without one program.
func installer(r *release, without string, args ...string) (string, error) {
	dir, err := os.MkdirTemp("", "plinth-path-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for _, place := range []string{"/usr/bin", "/bin"} {
		entries, err := os.ReadDir(place)
		if err != nil {
			return "", err
		}
		for _, entry := range entries {
			if entry.Name() != without {
				_ = os.Symlink(filepath.Join(place, entry.Name()), filepath.Join(dir, entry.Name()))
			}
		}
	}
	cmd := exec.Command("busybox", append([]string{"sh", filepath.Join(r.dist, "install.sh")}, args...)...)
	cmd.Env = []string{"PATH=" + dir, "HOME=/nowhere"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// spoil changes a byte of a file, a digit of a checksum if it has any.
func spoil(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	text[40] ^= 1
	must(t, os.WriteFile(file, text, 0o644))
}

// signAgain signs the checksums with another key.
func signAgain(t *testing.T, dir string) {
	t.Helper()
	_, key, err := minisign.GenerateKey(rand.Reader)
	must(t, err)
	text, err := os.ReadFile(filepath.Join(dir, checksums))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, checksums+".minisig"), minisign.SignWithComments(key, text, "plinth v9", "another"), 0o644))
}

// TestInstallerOptions reads the script as the repository has it.
func TestInstallerOptions(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "this copy of install.sh is not from a release"},
		{"--version v0.5.0", "has no key to verify with"},
		{"--version 0.5.0", "0.5.0 is not a version"},
		{"--version v0.5.0/../x", "is not a version"},
		{"--prefix", "--prefix needs a value"},
		{"--frm x", "unknown option --frm"},
	} {
		out, err := exec.Command("sh", append([]string{"../../install.sh"}, strings.Fields(tt.args)...)...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), tt.want) || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%s: %v: %s; want %s", tt.args, err, out, tt.want)
		}
	}
}
