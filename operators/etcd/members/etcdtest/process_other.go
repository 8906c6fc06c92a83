//go:build !linux

package etcdtest

import (
	"syscall"
	"time"
)

// EndsWithParent keeps a Ctrl-C from reaching a member before the test has.
func EndsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// standsStill gives a process time to stop.
func standsStill(int) error {
	time.Sleep(time.Second)
	return nil
}

// reserve hopes that no other test takes the port.
func reserve(int) error { return nil }
