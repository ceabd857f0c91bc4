package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// unprivileged runs plinth without capabilities, so that file permissions and the restriction of
// low ports hold for root, too.
func unprivileged(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd, stderr := plinth(t, nil, args...)
	if os.Geteuid() == 0 {
		setpriv, err := exec.LookPath("setpriv")
		if err != nil {
			t.Skip("PERMISSIONS ARE NOT TESTED: root needs setpriv (of util-linux) for it")
		}
		cmd.Args = append([]string{setpriv, "--bounding-set=-all", "--inh-caps=-all", cmd.Path}, args...)
		cmd.Path = setpriv
	}
	_ = cmd.Run()
	return stderr.String(), cmd.ProcessState.ExitCode()
}

func wantError(t *testing.T, out string, code int, parts ...string) {
	t.Helper()
	out = complaint(out)
	if code != 1 || strings.Count(out, "\n") != 1 || !strings.HasPrefix(out, "plinth: ") {
		t.Errorf("exit code %d: %s; want 1 and one line", code, out)
	}
	for _, part := range parts {
		if !strings.Contains(out, part) {
			t.Errorf("printed %s; want %s", out, part)
		}
	}
}

func TestDataDirPermissions(t *testing.T) {
	locked := t.TempDir()
	data := filepath.Join(locked, "data")
	p := startPlinth(t, nil, "serve", "--listen", "127.0.0.1:0", "--data-dir", data)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	chmod := func(path string, mode os.FileMode) {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(path, 0o700) })
	}
	serve := func(dir string) (string, int) {
		return unprivileged(t, "serve", "--listen", "127.0.0.1:0", "--database-timeout", "0", "--data-dir", dir)
	}
	todo := "make it a directory that user id " + strconv.Itoa(os.Geteuid()) + " may read and write, or write another one"

	chmod(filepath.Join(data, "pki", "sa.key"), 0)
	out, code := serve(data)
	wantError(t, out, code, "plinth: --data-dir "+data+": ", "sa.key: permission denied", todo)
	chmod(filepath.Join(data, "pki", "ca.key"), 0)
	out, code = serve(data)
	wantError(t, out, code, "plinth: --data-dir "+data+": ", "ca.key: permission denied", todo)
	if strings.Contains(out, "remove the directory") {
		t.Errorf("advises to give up an authority that is only locked: %s", out)
	}
	chmod(locked, 0o500)
	out, code = serve(filepath.Join(locked, "other"))
	wantError(t, out, code, "plinth: --data-dir "+locked+"/other: ", "permission denied", todo)
}

func TestLowPort(t *testing.T) {
	const first = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
	if text, err := os.ReadFile(first); err == nil {
		if n, _ := strconv.Atoi(strings.TrimSpace(string(text))); n <= 443 {
			t.Skipf("A LOW PORT IS NOT TESTED: everybody may listen on 443 here, by %s", first)
		}
	}
	out, code := unprivileged(t, "serve", "--listen", "127.0.0.1:443")
	wantError(t, out, code, "plinth: --listen 127.0.0.1:443: permission denied; ", "write a higher one, such as 127.0.0.1:6443")
}
