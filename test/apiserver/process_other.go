//go:build !linux

package apiserver

import "syscall"

// dieWithParent can't be asked for here: a test process that is killed leaves its
// API server behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
