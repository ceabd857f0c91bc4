package measure

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestSpend looks at a shell that computes, and whose child writes.
func TestSpend(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	file := filepath.Join(t.TempDir(), "file")
	cmd := exec.Command("sh", "-c", `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done
		dd if=/dev/zero of="$0" bs=1048576 count=4 2>/dev/null; sync "$0"; echo; cat; :`, file)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if _, ok := Spend([]int{cmd.Process.Pid}); ok {
			t.Error("a process that has ended is known")
		}
		if err := CheckProcess(cmd.Process.Pid); err == nil || !strings.Contains(err.Error(), "there is no such process") {
			t.Errorf("a process that has ended: %v", err)
		}
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s, ok := Spend([]int{cmd.Process.Pid, cmd.Process.Pid})
	if !ok || s.CPU < 10*time.Millisecond || s.RSS <= 0 || s.Private <= 0 || s.Private > s.RSS {
		t.Errorf("%+v, %v", s, ok)
	}
	// The file may be on a disk in memory, which nobody writes to.
	if s.Written != 0 && s.Written < 4<<20 {
		t.Errorf("%d bytes were written", s.Written)
	}
	for deadline := time.Now().Add(time.Minute); len(withChildren([]int{cmd.Process.Pid})) != 2; {
		if time.Now().After(deadline) {
			t.Fatalf("the shell and its child are %v", withChildren([]int{cmd.Process.Pid}))
		}
		time.Sleep(time.Millisecond)
	}
	if _, ok := Spend(nil); ok {
		t.Error("no process is known")
	}
	if err := CheckProcess(cmd.Process.Pid); err != nil {
		t.Error(err)
	}
	if one, err := read(os.Getpid()); err != nil || one.RSS <= 0 {
		t.Errorf("%+v, %v", one, err)
	}
}

func TestDiskUse(t *testing.T) {
	dir := t.TempDir()
	for name, size := range map[string]int{"a": 1000, "sub/b": 234} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := DiskUse(dir); got != 1234 || err != nil {
		t.Errorf("%d bytes, %v", got, err)
	}
	if _, err := DiskUse(filepath.Join(dir, "absent")); err == nil {
		t.Error("a directory that is not there has a size")
	}
}
