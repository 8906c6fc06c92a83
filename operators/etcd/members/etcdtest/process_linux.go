package etcdtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// EndsWithParent has the kernel end a member whose test was killed.
func EndsWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// standsStill returns an error while a thread of a process still runs: a signal takes its time.
func standsStill(pid int) error {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		if err != nil {
			return err
		}
		// The state is behind the name, which may have anything in it.
		if _, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" ")); !bytes.HasPrefix(state, []byte("T")) {
			return fmt.Errorf("a thread runs: %s", stat)
		}
	}
	return nil
}

// reserve takes a port from all other tests on this machine until the process ends: it binds a socket that is called so,
// which is no file (unix(7), "abstract").
func reserve(port int) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	if err = syscall.Bind(fd, &syscall.SockaddrUnix{Name: fmt.Sprintf("@fairlead-etcdtest-%d", port)}); err != nil {
		_ = syscall.Close(fd) // nothing was written
	}
	return err
}
