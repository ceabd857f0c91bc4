package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"debug/elf"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// These tests check what make release has made, so make release-check runs them, as root.

var (
	dist       = flag.String("dist", "../../dist", "directory of the release")
	debianFlag = flag.String("debian", "", "directory in which debootstrap has installed a bare Debian before")
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// made returns the release in dist.
func made(t *testing.T) *release {
	t.Helper()
	dir, err := filepath.Abs(*dist)
	must(t, err)
	found, err := filepath.Glob(filepath.Join(dir, product+"_*_image.tar"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%s has %d images of plinth, not one: run make release first", dir, len(found))
	}
	version := regexp.MustCompile(`_(v.+)_image\.tar$`).FindStringSubmatch(found[0])[1]
	root, err := git("rev-parse --show-toplevel")
	must(t, err)
	return &release{root: root, dist: dir, version: version}
}

// needs fails a test whose program is missing, and says what to install.
func needs(t *testing.T, program, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is not installed; on Debian and Ubuntu: apt-get install %s", program, pkg)
	}
	return path
}

// said runs a command and returns what it says.
func said(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// debian makes a bare Debian once: what debootstrap installs as the least there is.
var debian = sync.OnceValues(func() (string, error) {
	if *debianFlag != "" {
		return *debianFlag, nil
	}
	dir, err := os.MkdirTemp("", "plinth-debian-")
	if err != nil {
		return "", err
	}
	debianDir = dir
	if err := os.Chmod(dir, 0o755); err != nil {
		return "", err
	}
	out, err := exec.Command("debootstrap", "--variant=minbase", "bookworm", dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("debootstrap: %w: %s", err, out[max(0, len(out)-2000):])
	}
	return dir, nil
})

var debianDir string // to be removed

func TestMain(m *testing.M) {
	code := m.Run()
	if debianDir != "" {
		_ = os.RemoveAll(debianDir)
	}
	os.Exit(code)
}

// bareDebian returns a root of its own with a bare Debian.
func bareDebian(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Fatal("only root may change the root of a process: run make release-check as root")
	}
	needs(t, "debootstrap", "debootstrap")
	first, err := debian()
	must(t, err)
	root := t.TempDir()
	must(t, os.Chmod(root, 0o755))
	said(t, "cp", "-a", "--reflink=auto", first+"/.", root)
	return root
}

// inside is how a program is run below a root: as a user, with an emulator if it is for another platform.
type inside struct {
	root, user string
	emulator   []string
	env        []string // more variables
}

// emulated copies the emulator for a platform into the root, if this machine needs one.
func (in inside) emulated(t *testing.T, p platform) inside {
	t.Helper()
	here, err := here()
	must(t, err)
	if here.Arch == p.Arch {
		return in
	}
	names := map[string]string{"amd64": "qemu-x86_64-static", "arm64": "qemu-aarch64-static"}
	static := needs(t, names[p.Arch], "qemu-user-static")
	said(t, "install", "-m", "0755", static, filepath.Join(in.root, "emulator"))
	in.emulator = []string{"/emulator"}
	return in
}

func (in inside) command(args ...string) *exec.Cmd {
	all := []string{in.root}
	if in.user != "" {
		all = append([]string{"--userspec=" + in.user}, all...)
	}
	cmd := exec.Command("chroot", append(append(all, in.emulator...), args...)...)
	cmd.Env = append([]string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/"}, in.env...)
	return cmd
}

func (in inside) said(t *testing.T, args ...string) string {
	t.Helper()
	out, err := in.command(args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// serves starts plinth below the root, waits until it is ready, asks for its namespaces, and stops it. The data directory is that of
// the arguments, below the root.
func (in inside) serves(t *testing.T, data string, args ...string) {
	t.Helper()
	cmd := in.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	began := time.Now()
	must(t, cmd.Start())
	giveUp := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	ready := false
	for lines := bufio.NewScanner(stdout); !ready && lines.Scan(); {
		ready = strings.HasPrefix(lines.Text(), "export KUBECONFIG=")
	}
	if !ready {
		_ = cmd.Wait()
		t.Fatalf("%v did not serve: %v: %s", args, cmd.ProcessState, stderr.String())
	}
	t.Logf("%v serves after %.2f s", args, time.Since(began).Seconds())
	answered(t, filepath.Join(in.root, data))
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v ended with %v: %s", args, err, stderr.String())
	}
}

// answered asks a server, whose data directory is given, for its readiness and its namespaces, as its admin.
func answered(t *testing.T, data string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(data, "kubeconfig"))
	must(t, err)
	url := regexp.MustCompile(`server: (\S+)`).FindSubmatch(text)
	authority, err := os.ReadFile(filepath.Join(data, "pki/ca.crt"))
	must(t, err)
	admin, err := tls.LoadX509KeyPair(filepath.Join(data, "pki/admin.crt"), filepath.Join(data, "pki/admin.key"))
	must(t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{admin}}}}
	defer client.CloseIdleConnections()
	for path, want := range map[string]string{"/readyz": "ok", "/api/v1/namespaces": `"name":"kube-system"`} {
		response, err := client.Get(strings.Replace(string(url[1]), "0.0.0.0", "127.0.0.1", 1) + path)
		must(t, err)
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		must(t, err)
		if response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			t.Errorf("%s answers %s: %.300s", path, response.Status, body)
		}
	}
}

// wantStatic checks that a program needs no library and carries no symbols.
func wantStatic(t *testing.T, program string, p platform) {
	t.Helper()
	file, err := elf.Open(program)
	must(t, err)
	defer file.Close()
	if want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[p.Arch]; file.Machine != want {
		t.Errorf("%s is for %v, want %v", program, file.Machine, want)
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Errorf("%s needs a dynamic linker", program)
		}
	}
	for _, section := range []string{".symtab", ".debug_info", ".zdebug_info"} {
		if file.Section(section) != nil {
			t.Errorf("%s has %s", program, section)
		}
	}
}

// wantSmall checks the size of a file for a download.
func wantSmall(t *testing.T, file string) {
	t.Helper()
	info, err := os.Stat(file)
	must(t, err)
	t.Logf("%s has %.1f MB", filepath.Base(file), float64(info.Size())/1e6)
	if info.Size() > 60e6 {
		t.Errorf("%s has %d bytes, more than 60 MB", file, info.Size())
	}
}
