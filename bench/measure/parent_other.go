//go:build !linux

package measure

import "syscall"

func withParent() *syscall.SysProcAttr { return nil }
