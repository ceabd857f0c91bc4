package measure

import "syscall"

// withParent ends a process together with the one that has started it, whatever ends that.
func withParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
