package backups

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/plinth-io/plinth/sqlstore/atomicfile"
)

// tempPrefix is what names of files begin with that are not complete.
const tempPrefix = ".plinth-backup-"

// WriteError says that a file could not be written, not what was to be in it.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return e.Err.Error() }
func (e *WriteError) Unwrap() error { return e.Err }

// WriteFile writes a file into a folder. It has the name that write returns, and has it only when it is
// complete and on the disk; a file that had the name is replaced. If write fails nothing is left. Only
// the owner can read it.
func WriteFile(folder string, write func(io.Writer) (name string, err error)) error {
	temp, err := os.CreateTemp(folder, tempPrefix+"*")
	if err != nil {
		return writeError(err)
	}
	defer os.Remove(temp.Name()) // no effect after the rename
	to := &fileWriter{file: temp}
	name, err := write(to)
	if err != nil {
		temp.Close()
		if to.err != nil {
			return writeError(to.err)
		}
		return err
	}
	if err := atomicfile.Commit(temp, filepath.Join(folder, name)); err != nil {
		return writeError(err)
	}
	return nil
}

// writeError takes the name of the temporary file out of an error.
func writeError(err error) error { return &WriteError{withoutPath(err)} }

// withoutPath is an error of a file without its name.
func withoutPath(err error) error {
	var detail *fs.PathError
	if errors.As(err, &detail) {
		return detail.Err
	}
	return err
}

// fileWriter remembers why a file could not be written.
type fileWriter struct {
	file *os.File
	err  error
}

func (w *fileWriter) Write(b []byte) (n int, err error) {
	if n, err = w.file.Write(b); err != nil {
		w.err = err
	}
	return n, err
}
