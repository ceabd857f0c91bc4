package measure

import (
	"os"
	"strings"
	"testing"
)

// TestStartPlinth starts a program that serves as plinth does, until it is killed or told to end.
func TestStartPlinth(t *testing.T) {
	data := t.TempDir()
	command := []string{"sh", "-c", `trap 'exit 3' TERM
		echo "data in $2" >&2
		echo "export A=b   # serving https://127.0.0.1:4321 from $PLINTH_DSN"
		while :; do sleep 0.01; done`, "sh"}
	for _, end := range []string{"kill", "stop"} {
		p, err := StartPlinth(t.Context(), command, data, "sqlite://x")
		if err != nil {
			t.Fatal(err)
		}
		if p.URL != "https://127.0.0.1:4321" || p.PID() <= 0 || p.Took <= 0 {
			t.Errorf("%+v", p)
		}
		if end == "kill" {
			p.Kill()
		} else if err := p.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 3: data in "+data) {
			t.Errorf("it ended with %v", err)
		}
		if left, known := Spend([]int{p.PID()}); known {
			t.Errorf("it has not ended: %+v", left)
		}
	}
	if log, err := os.ReadFile(data + "/log"); err != nil || strings.Count(string(log), "data in "+data) != 2 {
		t.Errorf("the log is %q, %v", log, err)
	}
}

func TestStartPlinthFails(t *testing.T) {
	for name, c := range map[string]struct {
		command []string
		want    string
	}{
		"absent":   {[]string{"./absent"}, "start ./absent: "},
		"ended":    {[]string{"sh", "-c", "echo no such luck >&2; exit 1"}, "it does not say that it serves: no such luck"},
		"says":     {[]string{"sh", "-c", "echo nothing; exec sleep 60"}, "it does not say that it serves"},
		"database": {[]string{"true"}, "oracle"},
	} {
		dsn := "sqlite://x"
		if name == "database" {
			dsn = "oracle://x"
		}
		dir := t.TempDir()
		_, err := StartOwn(t.Context(), c.command, dir, dsn)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: left behind: %v", name, left)
		}
	}
}
