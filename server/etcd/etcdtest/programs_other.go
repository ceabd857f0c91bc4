//go:build !linux

package etcdtest

import "syscall"

func withTest() *syscall.SysProcAttr { return nil }
