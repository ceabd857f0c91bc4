package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/plinth-io/plinth/bench/figures"
	"github.com/plinth-io/plinth/bench/measure"
)

// usage returns the CPU time that this process has used in all its threads, its resident memory in
// bytes, and how much of that is not the program's file, which the kernel reads again when it is
// needed.
func usage() (cpu time.Duration, rss, own int64, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, 0, fmt.Errorf("read CPU time: %w", err)
	}
	cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	rss, own, err = resident()
	return cpu, rss, own, err
}

// grown returns by how much the memory of a server has grown, in MiB. The program's own pages do not
// count: an idle server has given most of them back, and the next request needs some again. If memory
// has shrunk, because the server has given more back than it took, the growth is too small to be
// measured, and a note says so.
func grown(what string, before, after int64) Figure {
	f := Figure{What: what, Value: figures.MiB(after - before), Unit: "MiB"}
	if after < before {
		f.Value, f.Note = 0, "too little to measure: the server gave memory back meanwhile"
	}
	return f
}

// resident returns the resident memory in bytes, all and without pages of files: from /proc, or all
// for both from ps where there is no /proc.
func resident() (all, own int64, err error) {
	if spent, known := measure.Spend([]int{os.Getpid()}); known {
		return spent.RSS, spent.Private, nil
	}
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(os.Getpid())).Output()
	if err != nil {
		return 0, 0, fmt.Errorf("read resident memory: %w", err)
	}
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(out)), 10, 64)
	return kib << 10, kib << 10, err
}
