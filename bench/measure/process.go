package measure

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Spent is what processes have used, in sum.
type Spent struct {
	CPU     time.Duration
	RSS     int64 // bytes, resident now
	Private int64 // of them without pages of files
	Written int64 // bytes, caused to be written to disks
}

// Since returns what was used since an earlier look; memory is that of now.
func (s Spent) Since(before Spent) Spent {
	s.CPU -= before.CPU
	s.Written -= before.Written
	return s
}

// Footprint is what a server has on disk and has used. What is not known is left out.
type Footprint struct {
	Size  int64 // of the database, bytes
	Sized bool  // Size is known
	Spent Spent
	Known bool // what was spent
}

// FootprintOf returns what processes have used.
func FootprintOf(pids []int) (f Footprint) {
	f.Spent, f.Known = Spend(pids)
	return f
}

// Since returns what has come since an earlier look.
func (f Footprint) Since(before Footprint) Footprint {
	return Footprint{f.Size - before.Size, f.Sized && before.Sized, f.Spent.Since(before.Spent), f.Known && before.Known}
}

// clockTick is the unit of times in /proc, on all Linux there is today.
const clockTick = time.Second / 100

// Spend returns what processes have used with all that they have started; ok is false if /proc
// does not tell.
func Spend(pids []int) (sum Spent, ok bool) {
	if len(pids) == 0 {
		return sum, false
	}
	seen := map[int]bool{}
	for _, pid := range withChildren(pids) {
		if seen[pid] {
			continue
		}
		seen[pid] = true
		one, err := read(pid)
		if err != nil {
			continue // it has ended, and its parent has counted what it wrote
		}
		sum.CPU += one.CPU
		sum.RSS += one.RSS
		sum.Private += one.Private
		sum.Written += one.Written
		ok = true
	}
	return sum, ok
}

// CheckProcess says why what a process uses cannot be known. Where there is no /proc, nothing is known of
// any process, and that is no error.
func CheckProcess(pid int) error {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return nil
	}
	_, err := read(pid)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH):
		return errors.New("there is no such process; write the id of one that runs")
	case errors.Is(err, fs.ErrPermission):
		return errors.New("what it uses may be read only by its user and by root; run the command as one of them, or leave it out")
	}
	return err
}

// withChildren returns the processes and those that they have started.
func withChildren(pids []int) []int {
	all := append([]int{}, pids...)
	for i := 0; i < len(all); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i]))
		for _, list := range lists {
			b, _ := os.ReadFile(list)
			for _, field := range strings.Fields(string(b)) {
				if pid, err := strconv.Atoi(field); err == nil {
					all = append(all, pid)
				}
			}
		}
	}
	return all
}

func read(pid int) (s Spent, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return s, err
	}
	// The name, in parentheses, may have blanks. What follows it begins with the third field.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 22 {
		return s, fmt.Errorf("/proc/%d/stat has %q", pid, stat)
	}
	for _, i := range []int{11, 12} { // utime and stime
		ticks, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return s, err
		}
		s.CPU += time.Duration(ticks) * clockTick
	}
	status, err := named(pid, "status")
	if err != nil {
		return s, err
	}
	s.RSS, s.Private = status["VmRSS"]<<10, (status["RssAnon"]+status["RssShmem"])<<10
	io, err := named(pid, "io")
	s.Written = io["write_bytes"] - io["cancelled_write_bytes"]
	return s, err
}

// named reads lines as "VmRSS:  1234 kB".
func named(pid int, file string) (map[string]int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	if err != nil {
		return nil, err
	}
	values := map[string]int64{}
	for line := range strings.Lines(string(b)) {
		name, rest, _ := strings.Cut(line, ":")
		if fields := strings.Fields(rest); len(fields) > 0 {
			if v, err := strconv.ParseInt(fields[0], 10, 64); err == nil {
				values[name] = v
			}
		}
	}
	return values, nil
}

// DiskUse returns the bytes of all files in a directory. Files may come and go meanwhile.
func DiskUse(dir string) (bytes int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path != dir {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes, err
}
