package dbserver

import (
	"os"
	"strings"
	"testing"
	"time"
)

// TestHAPatroni has the primary change in each way that the cluster knows. Each time the other node takes
// over, and the first one comes back as a standby.
func TestHAPatroni(t *testing.T) {
	if !strings.Contains(os.Getenv("PLINTH_TEST_HA"), "patroni") {
		t.Skip("make test-ha runs this: it needs a Patroni cluster")
	}
	p, err := StartPatroni(2, false)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, change := range []struct {
		name     string
		end      func(n int) error
		comeBack func(n int) error
	}{
		{"switchover", func(n int) error { return p.Switchover(n, 1-n) }, func(int) error { return nil }},
		{"frozen", p.Freeze, p.Thaw},
		{"killed while it holds standbys back", func(n int) error { must(p.Hold(n)); return p.Kill(n) }, func(n int) error { return p.Nodes[n].Start() }},
	} {
		was, err := p.Primary()
		must(err)
		begun := time.Now()
		must(change.end(was))
		for now := was; now == was; time.Sleep(100 * time.Millisecond) {
			if n, err := p.Primary(); err == nil {
				now = n
			}
			if time.Since(begun) > startTimeout {
				t.Fatalf("%s: no other primary", change.name)
			}
		}
		t.Logf("%s: another primary after %v", change.name, time.Since(begun))
		must(change.comeBack(was))
		must(p.AwaitStandbys())
	}
}
