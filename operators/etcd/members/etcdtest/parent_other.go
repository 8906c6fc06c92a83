//go:build !linux

package etcdtest

import "syscall"

// EndsWithParent keeps a Ctrl-C from reaching a member before the test has.
func EndsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
