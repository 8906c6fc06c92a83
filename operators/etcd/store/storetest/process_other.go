//go:build !linux

package storetest

import "syscall"

func endsWithParent() *syscall.SysProcAttr { return nil }
