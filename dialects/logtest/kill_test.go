package logtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/plinth-io/plinth/dialects"
	"github.com/plinth-io/plinth/sqlstore/changelog"
)

const envChild = "PLINTH_TEST_CHILD_DSN"

// TestMain makes the test binary the child that TestKill kills.
func TestMain(m *testing.M) {
	if dsn := os.Getenv(envChild); dsn != "" {
		fmt.Fprintln(os.Stderr, writeForever(dsn))
		os.Exit(1)
	}
	AtOnce(8)
	os.Exit(m.Run())
}

// writeForever appends batches of five and prints the last revision of each that was
// acknowledged. Old versions move to past, and go when they are too many.
func writeForever(dsn string) error {
	l, err := dialects.Open(context.Background(), dsn, dialects.Options{})
	if err != nil {
		return err
	}
	var last [5]int64
	for i := 0; ; i++ {
		var batch []changelog.Change
		for j := range last {
			batch = append(batch, changelog.Change{Key: keyOf(j), Expect: last[j], Value: fmt.Appendf(nil, "%d", i)})
		}
		a, err := l.Append(context.Background(), batch)
		if err != nil {
			return err
		}
		for j := range last {
			last[j] = a.Results[j].Revision
		}
		fmt.Println(last[4])
		if i%10 == 9 {
			if _, err := l.Compact(context.Background(), last[4]-20, 200, daysAndSecrets); err != nil {
				return err
			}
			if _, err := l.Bound(context.Background(), 1000, 10); err != nil {
				return err
			}
			if err := l.Reclaim(context.Background()); err != nil {
				return err
			}
		}
	}
}

// TestKill kills a writing process with SIGKILL. All it acknowledged must be there, no
// batch in part, and the next process must get the lock.
func TestKill(t *testing.T) {
	forEach(t, func(t *testing.T, db database) {
		if db.name == "memory" {
			return // dies with its process
		}
		acknowledged := killWriter(t, db.dsn)
		l := db.open(t)
		head := l.head().Revision
		t.Logf("acknowledged %d, head %d", acknowledged, head)
		if head < acknowledged || head%5 != 0 || head > acknowledged+5 {
			t.Errorf("head %d after %d was acknowledged", head, acknowledged)
		}
		if noted, added := l.noted(), l.added(); noted != added || noted == 0 {
			t.Errorf("%d bytes of old versions are noted, and %d are there", noted, added)
		}
		if rows := l.state(first, end, head); len(rows) != 5 || rows[4].Revision != head {
			t.Errorf("state %+v", forget(rows))
		}
		if got := l.put("/registry/after", 0, "x"); got != head+1 {
			t.Errorf("revision %d after head %d", got, head)
		}
	})
}

// killWriter returns the last revision that the process acknowledged before its end.
func killWriter(t *testing.T, dsn string) int64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+dsn)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var acknowledged int64
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if _, err := fmt.Sscan(lines.Text(), &acknowledged); err != nil {
			t.Fatal(err)
		}
		if n == 120 {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait()
	if acknowledged == 0 {
		t.Fatal("the writer acknowledged nothing")
	}
	return acknowledged
}
