//go:build !linux

package sqlite

import "os"

// lockInode does nothing where a lock on the file would be in the way of SQLite's own, as
// flock is on macOS. PATH.lock guards the database there, under one name.
func lockInode(*os.File) error { return nil }

func unlockInode(*os.File) error { return nil }
