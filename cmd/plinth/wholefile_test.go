package main

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A file that cannot be written has an advice that helps: room only where there is none.
func TestWhereToWrite(t *testing.T) {
	t.Parallel()
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "write to a directory in which user id ",
		syscall.EPERM:  "write to a directory in which user id ",
		syscall.EROFS:  "the file system is read-only",
		syscall.ENOSPC: "make room",
		syscall.EDQUOT: "make room",
		syscall.EIO:    "write to another place",
	} {
		if got := whereToWrite(&fs.PathError{Op: "open", Path: "x", Err: errno}); !strings.HasPrefix(got, want) || strings.Contains(got, "make room") != (want == "make room") {
			t.Errorf("%v: %s", errno, got)
		}
	}
	full := errors.New("the source fails")
	name := filepath.Join(t.TempDir(), "a.plinth")
	if err := writeWhole(name, func(io.Writer) error { return full }); !errors.Is(err, full) || strings.Contains(err.Error(), "make room") {
		t.Errorf("an error of the source: %v", err)
	}
}
