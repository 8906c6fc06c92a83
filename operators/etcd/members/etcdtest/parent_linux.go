package etcdtest

import "syscall"

// endsWithParent has the kernel end a member whose test was killed.
func endsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
