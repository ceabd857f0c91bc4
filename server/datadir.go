package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/plinth-io/plinth/server/fielderr"
)

// aboutDataDir adds to an error of the start about a file in the data directory what to do
// about it: often nobody has named that file.
func aboutDataDir(dir string, err error) error {
	path := deniedPath(err)
	var named *FieldError
	if path == "" || dir == "" || errors.As(err, &named) && slices.Contains(named.Fields(), "DataDir") || !within(dir, path) {
		return err
	}
	return fielderr.Errorf("%v %s: %w; make it a directory that user id %d may read and write, or write another one",
		field("DataDir"), dir, err, os.Geteuid())
}

// deniedPath is the file that err is about, if it is one that may not be used.
func deniedPath(err error) string {
	denied := errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR)
	var file *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &file) && (denied || file.Op == "mkdir"):
		return file.Path
	case errors.As(err, &link) && denied:
		return link.New
	}
	return ""
}

// within tells whether path is dir, in it, or a directory that dir is in, which must be made
// or passed on the way there.
func within(dir, path string) bool {
	dir, err1 := filepath.Abs(dir)
	path, err2 := filepath.Abs(path)
	if err1 != nil || err2 != nil {
		return false
	}
	return isBelow(dir, path) || isBelow(path, dir)
}

func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// absolute returns the absolute path of a file, for people who read it elsewhere; "" stays.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
