package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeWhole writes a file that has its name only when it is complete and on the disk. One that was
// there before is replaced. If write fails nothing is left.
func writeWhole(name string, write func(io.Writer) error) error {
	path, err := placeOf(name)
	if err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, plainPath(err))
	}
	defer os.Remove(temp.Name()) // no effect after the rename
	to := &fileWriter{file: temp}
	if err := write(to); err != nil {
		temp.Close()
		if to.err != nil {
			err = fmt.Errorf("write %s: %w; nothing is left of it: make room, or write to another disk", name, plainPath(to.err))
		}
		return err
	}
	if err := errors.Join(temp.Sync(), temp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, plainPath(err))
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return fmt.Errorf("write %s: %w", name, plainPath(err))
	}
	return syncFolder(filepath.Dir(path))
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
		return "", fmt.Errorf("write %s: %w", name, plainPath(err))
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("write %s: %w", name, plainPath(err))
	case info.IsDir():
		return "", usagef("%s is a directory; write the name of a file in it", name)
	case !info.Mode().IsRegular():
		return "", usagef("%s is not a file; write - for standard output", name)
	}
	return path, nil
}

// plainPath takes the path of a temporary file out of an error.
func plainPath(err error) error {
	var detail *fs.PathError
	if errors.As(err, &detail) {
		return detail.Err
	}
	return err
}

func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// fileWriter remembers why a file could not be written.
type fileWriter struct {
	file *os.File
	err  error
}

func (w *fileWriter) Write(b []byte) (n int, err error) {
	n, err = w.file.Write(b)
	if err != nil {
		w.err = err
	}
	return n, err
}
