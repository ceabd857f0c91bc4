package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/plinth-io/plinth/dialects/logtest/dbserver"
)

// missing makes commands and servers be missing, but for an apt-get and a docker that leave a trace.
func missing(t *testing.T) (trace string) {
	t.Helper()
	dir := t.TempDir()
	trace = filepath.Join(dir, "trace")
	for _, name := range []string{"apt-get", "docker"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho $0 $* >>"+trace+"\nexit 1\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("PLINTH_TEST_HA", "")
	was := needs
	needs = nil
	for _, n := range was {
		n.start = func(bool) (*dbserver.Server, error) { return nil, dbserver.ErrNotInstalled }
		n.there = func() bool { return false }
		needs = append(needs, n)
		t.Setenv(n.env, "")
	}
	t.Cleanup(func() { needs = was })
	return trace
}

// With PLINTH_TEST_INSTALL=0 nothing is installed and nothing is pulled, and the error says what to do.
func TestInstallForbidden(t *testing.T) {
	trace := missing(t)
	t.Setenv("PLINTH_TEST_INSTALL", "0")
	var out bytes.Buffer
	if err := announce(&out, wanted(), true, nil); err != nil || out.Len() > 0 {
		t.Errorf("announced %q, %v", &out, err)
	}
	_, stop, err := provide(false)
	stop()
	if err == nil || !strings.Contains(err.Error(), "set PLINTH_TEST_POSTGRES, or install the package postgresql") || strings.Count(err.Error(), "PLINTH_TEST_INSTALL=0 forbids it") != 2 {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadFile(trace); err == nil {
		t.Errorf("these ran: %s", left)
	}
}

// What will be installed is said before, all at once, and Ctrl-C at a terminal leaves it.
func TestInstallAnnounced(t *testing.T) {
	trace := missing(t)
	t.Setenv("PLINTH_TEST_INSTALL", "")
	want := "chromium curl openssl pgbouncer sqlite3 postgresql mariadb-server"
	if got := strings.Join(wanted(), " "); got != want {
		t.Errorf("wanted are %s; want %s", got, want)
	}
	if os.Geteuid() != 0 {
		return // nothing is installed
	}
	var out bytes.Buffer
	interrupted := make(chan os.Signal, 1)
	interrupted <- os.Interrupt
	if err := announce(&out, wanted(), true, interrupted); err == nil || !strings.Contains(out.String(), want) || !strings.Contains(out.String(), "PLINTH_TEST_INSTALL=0") {
		t.Errorf("%v: %s", err, &out)
	}
	if left, err := os.ReadFile(trace); err == nil {
		t.Errorf("these ran: %s", left)
	}
}
