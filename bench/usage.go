package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// usage returns the CPU time that this process has used in all its threads, and its
// resident memory in bytes.
func usage() (cpu time.Duration, rss int64, err error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, 0, fmt.Errorf("read CPU time: %w", err)
	}
	cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	rss, err = resident()
	return cpu, rss, err
}

// resident asks the kernel or, where that has no /proc, ps.
func resident() (int64, error) {
	if statm, err := os.ReadFile("/proc/self/statm"); err == nil {
		fields := bytes.Fields(statm)
		if len(fields) < 2 {
			return 0, fmt.Errorf("read resident memory: /proc/self/statm has %q", statm)
		}
		pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
		return pages * int64(os.Getpagesize()), err
	}
	out, err := exec.Command("ps", "-o", "rss=", "-p", strconv.Itoa(os.Getpid())).Output()
	if err != nil {
		return 0, fmt.Errorf("read resident memory: %w", err)
	}
	kib, err := strconv.ParseInt(string(bytes.TrimSpace(out)), 10, 64)
	return kib << 10, err
}
