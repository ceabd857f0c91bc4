package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/plinth-io/plinth/server/backups"
)

// writeWhole writes a file that has its name only when it is complete and on the disk. One that was
// there before is replaced. If write fails nothing is left.
func writeWhole(name string, write func(io.Writer) error) error {
	path, err := placeOf(name)
	if err != nil {
		return err
	}
	err = backups.WriteFile(filepath.Dir(path), func(to io.Writer) (string, error) { return filepath.Base(path), write(to) })
	var unwritten *backups.WriteError
	if errors.As(err, &unwritten) {
		err = fmt.Errorf("write %s: %w; nothing is left of it: %s", name, err, whereToWrite(err))
	}
	return err
}

// whereToWrite says what to do about a file that could not be written.
func whereToWrite(err error) string {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("write to a directory in which user id %d may make files", os.Geteuid())
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only: write to another place"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room, or write to another place"
	}
	return "write to another place"
}

// placeOf returns where a file is to be, which is a file already or nothing.
func placeOf(name string) (string, error) {
	path, err := filepath.EvalSymlinks(name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Dir(name)); err != nil {
			return "", usagef("%s: there is no directory %s; make it, or write another name", name, filepath.Dir(name))
		}
		return name, nil
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("write %s: %w", name, err)
	case info.IsDir():
		return "", usagef("%s is a directory; write the name of a file in it", name)
	case !info.Mode().IsRegular():
		return "", usagef("%s is not a file; write - for standard output", name)
	}
	return path, nil
}
