//go:build !linux

package torture

import "syscall"

func withParent() *syscall.SysProcAttr { return nil }
