//go:build !linux

package child

import "syscall"

// A test process that is killed leaves its children behind here.
func attributes(syscall.Signal) *syscall.SysProcAttr { return nil }
