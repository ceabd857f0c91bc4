package etcdtest

import (
	"os/exec"
	"testing"
)

// StartKine runs a real kine on a database until the test ends, and returns its HOST:PORT. endpoint is
// the database as kine takes it.
func StartKine(t testing.TB, endpoint string) string {
	t.Helper()
	program := Program(t, "kine")
	var out string
	for range 5 { // a port that was free may be somebody else's a moment later
		var address string
		if address, out = startKine(t, program, endpoint); address != "" {
			return address
		}
	}
	t.Fatalf("kine does not start: %s", out)
	return ""
}

func startKine(t testing.TB, program, endpoint string) (address, out string) {
	address = FreeAddress(t)
	cmd := exec.Command(program, "--endpoint="+endpoint, "--listen-address=tcp://"+address, "--metrics-bind-address=0")
	cmd.Dir = t.TempDir()
	return started(t, address, "kine", cmd)
}
