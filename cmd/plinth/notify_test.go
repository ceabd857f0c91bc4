package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
)

// A service manager hears when plinth serves and when it begins to stop.
func TestNotify(t *testing.T) {
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: filepath.Join(t.TempDir(), "notify")})
	must(t, err)
	defer manager.Close()
	p := startPlinth(t, []string{"NOTIFY_SOCKET=" + manager.LocalAddr().String()}, "serve", "--listen", "127.0.0.1:0")
	if got := datagram(t, manager); !strings.HasPrefix(got, "READY=1\nSTATUS=serving https://127.0.0.1:") {
		t.Errorf("after the start: %q", got)
	}
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if got := datagram(t, manager); got != "STOPPING=1" {
		t.Errorf("after SIGTERM: %q", got)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("ended with %v, on standard error: %s", err, p.stderr)
	}
	messages(t, p.stderr.String()) // fails the test if a record asks for attention
}

// A service manager that went away is no reason to stop serving.
func TestNotifyNobody(t *testing.T) {
	p := startPlinth(t, []string{"NOTIFY_SOCKET=" + filepath.Join(t.TempDir(), "gone")}, "serve", "--listen", "127.0.0.1:0")
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	if err := p.cmd.Wait(); err != nil || !strings.Contains(p.stderr.String(), "the service manager could not be told") {
		t.Errorf("ended with %v, on standard error: %s", err, p.stderr)
	}
}

func datagram(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(5*time.Minute)))
	buffer := make([]byte, 4096)
	n, err := c.Read(buffer)
	must(t, err)
	return string(buffer[:n])
}

var systemdUnit = filepath.Join("..", "..", "docs", "systemd", "plinth.service")

// TestUnitVerify has systemd-analyze check the unit. This binary replaces the program in the unit,
// because systemd-analyze looks for it.
func TestUnitVerify(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		fmt.Fprintln(os.Stderr, "TestUnitVerify: SKIPPED: systemd-analyze is not installed, so docs/systemd/plinth.service is not verified")
		t.Skip(err)
	}
	text, err := os.ReadFile(systemdUnit)
	must(t, err)
	self, err := os.Executable()
	must(t, err)
	copied := filepath.Join(t.TempDir(), "plinth.service")
	must(t, os.WriteFile(copied, bytes.ReplaceAll(text, []byte("/usr/local/bin/plinth"), []byte(self)), 0o600))
	// It succeeds even if it does not know a key, so its output has to be empty, too.
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", copied).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestUnit runs the command of the unit, and checks that systemd gives a stop more time than plinth
// may take.
func TestUnit(t *testing.T) {
	options := unitOptions(t)
	for key, want := range map[string]string{"Type": "notify", "KillSignal": "SIGTERM", "RestartPreventExitStatus": "2"} {
		if options[key] != want {
			t.Errorf("%s=%s, want %s", key, options[key], want)
		}
	}
	stop, err := time.ParseDuration(options["TimeoutStopSec"])
	must(t, err)
	most, err := time.ParseDuration(newServe().Flags().Lookup("shutdown-timeout").DefValue)
	must(t, err)
	if stop <= most {
		t.Errorf("TimeoutStopSec=%v, but --shutdown-timeout is %v", stop, most)
	}
	command := strings.Fields(strings.ReplaceAll(options["ExecStart"], "%S", t.TempDir()))
	if command[0] != "/usr/local/bin/plinth" {
		t.Fatalf("ExecStart=%s", options["ExecStart"])
	}
	p := startPlinth(t, []string{"PLINTH_LISTEN=127.0.0.1:0"}, command[1:]...)
	if want := filepath.Join(command[len(command)-1], "kubeconfig"); p.kubeconfig != want {
		t.Errorf("kubeconfig %s, want %s", p.kubeconfig, want)
	}
}

// unitOptions returns the options of the unit. If a key occurs twice, the last value counts.
func unitOptions(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(systemdUnit)
	must(t, err)
	defer f.Close()
	list, err := unit.DeserializeOptions(f)
	must(t, err)
	options := map[string]string{}
	for _, o := range list {
		options[o.Name] = o.Value
	}
	return options
}
