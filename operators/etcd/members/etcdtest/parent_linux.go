package etcdtest

import "syscall"

// EndsWithParent has the kernel end a member whose test was killed.
func EndsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
