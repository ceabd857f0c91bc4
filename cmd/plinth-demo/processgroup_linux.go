package main

import "syscall"

// ownProcessGroup runs a program in a process group of its own. If the demo is killed, the program
// gets SIGTERM.
func ownProcessGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
