//go:build cluster

package main

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/fairlead/localcluster/internal/images"
	"example.com/fairlead/localcluster/internal/pace"
)

// Every version of etcd that tests use is built, is what it says, and keeps a key.
func TestEtcd(t *testing.T) {
	out, err := exec.Command(program, append([]string{"etcd", "--dir", cache}, images.EtcdVersions...)...).Output()
	if err != nil {
		t.Fatalf("localcluster etcd: %v", err)
	}
	for _, version := range images.EtcdVersions {
		t.Run(version, func(t *testing.T) {
			folder := filepath.Join(strings.TrimSpace(string(out)), version)
			ask := func(program string, args ...string) string {
				t.Helper()
				out, err := exec.Command(filepath.Join(folder, program), args...).CombinedOutput()
				if err != nil {
					t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
				}
				return string(out)
			}
			number := strings.TrimPrefix(version, "v")
			for _, said := range []string{ask("etcd", "--version"), ask("etcdctl", "version"), ask("etcdutl", "version")} {
				if first, _, _ := strings.Cut(said, "\n"); !strings.HasSuffix(strings.ToLower(first), "version: "+number) {
					t.Errorf("it says %q, want version %s", first, number)
				}
			}
			client := startEtcd(t, filepath.Join(folder, "etcd"))
			ask("etcdctl", "--endpoints", client, "put", "greeting", "hello")
			if got := ask("etcdctl", "--endpoints", client, "get", "greeting", "--print-value-only"); got != "hello\n" {
				t.Errorf("the key has %q", got)
			}
		})
	}
}

// startEtcd starts a cluster of one member that ends with the test, and returns the
// address for clients.
func startEtcd(t *testing.T, program string) string {
	t.Helper()
	client, peer := freeAddress(t), freeAddress(t)
	var log bytes.Buffer
	etcd := exec.Command(program, "--data-dir", t.TempDir(), "--name", "one", "--initial-cluster", "one=http://"+peer,
		"--listen-client-urls", "http://"+client, "--advertise-client-urls", "http://"+client,
		"--listen-peer-urls", "http://"+peer, "--initial-advertise-peer-urls", "http://"+peer)
	etcd.Stdout, etcd.Stderr = &log, &log
	etcd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := etcd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = etcd.Process.Signal(syscall.SIGTERM)
		_ = etcd.Wait() // it says that a signal ended it
		if t.Failed() {
			t.Logf("etcd's log:\n%s", &log)
		}
	})
	for deadline := pace.In(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		out, err := exec.Command(program+"ctl", "--endpoints", client, "endpoint", "health").CombinedOutput()
		if err == nil {
			return client
		}
		if deadline.Passed() {
			t.Fatalf("after %s etcd is not healthy: %v\n%s", deadline, err, out)
		}
	}
}

// freeAddress is an address of this machine that nothing listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprint(listener.Addr())
}
