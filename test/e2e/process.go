//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
)

// Serve runs a program beside the cluster until the test ends, and waits until it listens on the
// address. What it says is shown if the test fails.
func Serve(t testing.TB, address, program string, args ...string) {
	t.Helper()
	said, err := os.Create(filepath.Join(t.TempDir(), filepath.Base(program)+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Stdout, cmd.Stderr = said, said
	cmd.Dir = t.TempDir()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // Pdeathsig comes when the thread ends that has started it
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		t.Fatalf("%s: %v; make build-storage builds it", program, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if t.Failed() {
			out, _ := os.ReadFile(said.Name())
			t.Logf("%s said:\n%s", program, out[max(0, len(out)-4000):])
		}
	})
	pace.Eventually(t, time.Minute, func() error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
}

// Signal sends a signal to the processes of members of etcd, which are found by the names that they were given.
func Signal(t testing.TB, signal syscall.Signal, members ...string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		for _, member := range members {
			if err != nil || !bytes.Contains(data, []byte("ETCD_NAME="+member+"\x00")) {
				continue
			}
			pid, err := strconv.Atoi(strings.Split(file, "/")[2])
			if err := errors.Join(err, syscall.Kill(pid, signal)); err != nil {
				t.Fatal(err)
			}
			sent++
		}
	}
	if sent < len(members) {
		t.Fatalf("of the members %v there are %d processes", members, sent)
	}
}

// Host is an address of this machine that pods of the local cluster reach.
func Host(t testing.TB) string {
	t.Helper()
	config, err := Config()
	if err != nil {
		t.Fatal(err)
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "udp", server.Host) // sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.LocalAddr().(*net.UDPAddr).IP.String()
}

// FreePort is a port of an address that nobody listens on.
func FreePort(t testing.TB, host string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
