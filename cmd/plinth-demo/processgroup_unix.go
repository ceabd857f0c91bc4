//go:build unix && !linux

package main

import "syscall"

// ownProcessGroup runs a program in a process group of its own.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
