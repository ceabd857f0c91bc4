package sqlite

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// A database file belongs to one process. SQLite's own locks guard single transactions only,
// so two more locks are held for as long as the log is open:
//
//   - one on the file itself, which holds whatever name the file is known by: a symbolic or
//     hard link, a bind mount in a container (guard, and lockInode for each system);
//   - one on the file PATH.lock, which holds from before the database is made, and on systems
//     where the first lock would get in the way of SQLite's (pathLock).

// errRunning says that another Log has the database open.
var errRunning = errors.New("another plinth is running on it; stop that one or use another database")

// identity tells files apart, whatever their names.
type identity struct{ dev, ino uint64 }

// identify returns the identity of the file at path.
func identify(path string) (identity, error) {
	info, err := os.Stat(path)
	if err != nil {
		return identity{}, err
	}
	return identityOf(info), nil
}

func identityOf(info os.FileInfo) identity {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{uint64(s.Dev), s.Ino} // the type of Dev differs between systems
}

// guarded are the files that this process has open as databases. A file of them must not be
// opened and closed beside SQLite: closing any descriptor of a file drops all locks that the
// process has on it by fcntl, SQLite's among them (fcntl_locking(2)).
var guarded = struct {
	sync.Mutex
	files map[identity]bool
}{files: map[identity]bool{}}

// guard holds the lock on the database file itself. It is taken before SQLite opens the file
// and released after SQLite has closed it.
type guard struct {
	file *os.File
	id   identity
}

// guardFile locks the database at path. It returns errRunning if another Log has it open.
func guardFile(path string) (*guard, error) {
	guarded.Lock()
	defer guarded.Unlock()
	id, err := identify(path)
	if err != nil {
		return nil, err
	}
	if guarded.files[id] {
		return nil, errRunning
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && identityOf(info) != id {
		// The descriptor stays open: what it leads to may be a file in guarded.
		return nil, fmt.Errorf("%s was replaced while it was opened; try again", path)
	}
	if err == nil {
		err = lockInode(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	guarded.files[id] = true
	return &guard{f, id}, nil
}

// release ends the lock. SQLite must have closed the file.
func (g *guard) release() error {
	guarded.Lock()
	defer guarded.Unlock()
	delete(guarded.files, g.id)
	return errors.Join(unlockInode(g.file), g.file.Close())
}

// pathLock takes the lock on the file at path, until pathUnlock.
func pathLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	return nil, lockError(path, err)
}

// pathUnlock ends a lock of pathLock. Closing f would not do: a process that this one starts meanwhile has a
// copy of the descriptor until it runs its own program, and keeps the lock for that long (flock(2)).
func pathUnlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// lockError explains why a lock was not given.
func lockError(path string, err error) error {
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK), errors.Is(err, syscall.EACCES):
		return errRunning
	case errors.Is(err, syscall.ENOLCK), errors.Is(err, syscall.ENOSYS), errors.Is(err, syscall.EOPNOTSUPP), errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("its file system has no file locks (%w), which keep a second plinth away from %s; put the database on a local file system", err, path)
	}
	return fmt.Errorf("lock %s: %w", path, err)
}
