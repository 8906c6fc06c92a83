//go:build !linux

package etcdtest

import "syscall"

// endsWithParent keeps a Ctrl-C from reaching a member before the test has.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
