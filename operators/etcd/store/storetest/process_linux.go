package storetest

import "syscall"

// endsWithParent has the kernel end a server whose test was killed.
func endsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
