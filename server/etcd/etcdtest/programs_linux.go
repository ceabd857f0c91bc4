package etcdtest

import "syscall"

// withTest ends a program together with the test that has started it, whatever ends the test.
func withTest() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
