//go:build unix

package server

import "syscall"

// mostOpenFiles returns how many files the process may have open.
func mostOpenFiles() (most uint64, known bool) {
	var l syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l)
	return uint64(l.Cur), err == nil
}
