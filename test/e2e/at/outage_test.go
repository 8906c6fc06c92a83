//go:build e2e

package at

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/test/e2e"
)

// TestSerialWithoutAPIServer stops the API server's process, so that
// requests are neither answered nor refused for a minute, while an At comes due.
// Every other test of a cluster that answers nobody would fail.
func TestSerialWithoutAPIServer(t *testing.T) {
	e2e.NeedsLocalCluster(t, "it stops the API server's process")
	ns := e2e.NewNamespace(t)
	at := newAt(ns, "patient", func(s *atv1alpha1.AtSpec) { s.Schedule = in(10 * time.Second) })
	create(t, at)
	waitFor(t, at, atv1alpha1.Pending, "Scheduled", 5*time.Second)

	server := apiServerProcess(t)
	if err := server.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	if err := server.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	got := waitFor(t, at, atv1alpha1.Done, "Completed", time.Minute)
	t.Logf("it started %v after its time, the API server was silent from about 10 s before to 50 s after it", got.Status.Lateness.Duration)
	if got.Status.Attempts != 1 || got.Status.StartTime.Before(got.Status.ScheduledTime) {
		t.Errorf("%d attempts, scheduled %v, started %v", got.Status.Attempts, got.Status.ScheduledTime, got.Status.StartTime)
	}
}

// apiServerProcess finds the kube-apiserver of this cluster among those of the
// machine: the one with this cluster's certificate authority.
func apiServerProcess(t *testing.T) *os.Process {
	t.Helper()
	cluster, err := e2e.Config()
	if err != nil {
		t.Fatal(err)
	}
	links, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		cmdline, err := os.ReadFile(link)
		if err != nil || !strings.HasPrefix(string(cmdline), "kube-apiserver\x00") {
			continue
		}
		proc := filepath.Dir(link)
		authority, err := os.ReadFile(filepath.Join(proc, "root", "etc", "kubernetes", "pki", "ca.crt"))
		if err != nil || !bytes.Equal(authority, cluster.CAData) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err != nil {
			t.Fatal(err)
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		return process
	}
	t.Fatal("the cluster's kube-apiserver was not found")
	return nil
}
