//go:build cluster

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/fairlead/localcluster/internal/host"
	"example.com/fairlead/localcluster/internal/pace"
)

type testCluster struct {
	t   *testing.T
	dir string
}

// newTestCluster is a cluster in a folder of its own that ends with the test.
func newTestCluster(t *testing.T) *testCluster {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &testCluster{t: t, dir: filepath.Join(dir, "cluster")}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log", "supervisor.log"))
			t.Logf("supervisor.log of %s:\n%s", c.dir, log)
		}
		c.down()
	})
	return c
}

func (c *testCluster) run(args ...string) string { return c.execute(program, args...) }

func (c *testCluster) up(more ...string) string {
	return c.run(append([]string{"up", "--dir", c.dir, "--cache", cache}, more...)...)
}

func (c *testCluster) down() { c.run("down", "--dir", c.dir) }

func (c *testCluster) kubectl(args ...string) string {
	c.t.Helper()
	cmd := c.command(args...)
	return c.execute(cmd.Path, cmd.Args[1:]...)
}

// command is kubectl's for the cluster, to be run.
func (c *testCluster) command(args ...string) *exec.Cmd {
	return exec.Command(filepath.Join(c.dir, "bin", "kubectl"), append([]string{"--kubeconfig=" + filepath.Join(c.dir, "kubeconfig")}, args...)...)
}

// wait runs a kubectl command that waits for something. A slow machine is given
// more time.
func (c *testCluster) wait(limit time.Duration, args ...string) {
	c.t.Helper()
	command := append(slices.Clone(args), "--timeout=5s")
	for deadline := pace.In(limit); ; time.Sleep(50 * time.Millisecond) {
		out, err := c.command(command...).CombinedOutput()
		if err == nil {
			return
		}
		if deadline.Passed() {
			c.t.Fatalf("after %s: kubectl %s: %v\n%s", deadline, strings.Join(args, " "), err, out)
		}
	}
}

// sameKernelSettings checks that nothing of the machine's was changed.
func (c *testCluster) sameKernelSettings(before map[string]string) {
	c.t.Helper()
	now := kernelSettings(c.t)
	for setting, value := range before {
		// What was there for a network device may go with it.
		if got, ok := now[setting]; ok && got != value {
			c.t.Errorf("the machine's %s was %q and is %q", setting, value, got)
		}
	}
}

// kernelSettings are the machine's: all files of /proc/sys that can be set.
func kernelSettings(t *testing.T) map[string]string {
	t.Helper()
	settings := map[string]string{}
	_ = filepath.WalkDir("/proc/sys", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && !strings.HasSuffix(path, "/ns_last_pid") { // which changes by itself
			info, infoErr := entry.Info()
			value, readErr := os.ReadFile(path) // some cannot be read until they have been set
			if infoErr == nil && readErr == nil && info.Mode().Perm()&0o600 == 0o600 {
				settings[path] = string(value)
			}
		}
		return nil // devices come and go
	})
	if len(settings) < 100 {
		t.Fatalf("only %d settings in /proc/sys", len(settings))
	}
	return settings
}

func (c *testCluster) apply(manifest string) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o644); err != nil {
		c.t.Fatal(err)
	}
	c.kubectl("apply", "--server-side", "--filename="+file)
}

// execute returns the output; what commands say beside it is there only if it
// is all there is.
func (c *testCluster) execute(name string, args ...string) string {
	c.t.Helper()
	cmd := exec.Command(name, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("%s: %v\n%s%s", strings.Join(cmd.Args, " "), err, &stdout, &stderr)
	}
	if stdout.Len() == 0 && name == program {
		return stderr.String()
	}
	return stdout.String()
}

func (c *testCluster) entry() host.Entry {
	c.t.Helper()
	entry, err := host.Find(c.dir)
	if err != nil || entry == nil {
		c.t.Fatalf("no cluster in %s (%v)", c.dir, err)
	}
	return *entry
}

// nothingLeft checks that soon nothing on the host is the cluster's.
func (c *testCluster) nothingLeft(entry host.Entry) {
	c.t.Helper()
	eventually(c.t, "no process of the cluster", func() bool {
		commands, _ := filepath.Glob("/proc/[0-9]*/cgroup")
		for _, file := range commands {
			if data, _ := os.ReadFile(file); strings.Contains(string(data), entry.Cgroup(0)) {
				return false
			}
		}
		_, keeper := os.Stat(fmt.Sprintf("/proc/%d", entry.Keeper))
		_, init := os.Stat(fmt.Sprintf("/proc/%d", entry.Init.PID))
		return os.IsNotExist(keeper) && os.IsNotExist(init)
	})
	eventually(c.t, "no cgroup folder", func() bool {
		v1, _ := filepath.Glob("/sys/fs/cgroup/*/" + entry.Cgroup(0) + "*")
		v2, _ := filepath.Glob("/sys/fs/cgroup/" + entry.Cgroup(0) + "*")
		return len(v1)+len(v2) == 0
	})
	eventually(c.t, "no network device", func() bool {
		_, err := os.Stat("/sys/class/net/" + entry.Link())
		return os.IsNotExist(err)
	})
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), c.dir) {
		c.t.Errorf("a mount is left in %s (%v)", c.dir, err)
	}
	eventually(c.t, "no entry", func() bool {
		_, err := os.Stat("/run/localcluster/" + entry.ID + ".json")
		return os.IsNotExist(err)
	})
}

func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := pace.In(20 * time.Second); !check(); time.Sleep(50 * time.Millisecond) {
		if deadline.Passed() {
			t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}

// child is the process of that name that a process has started.
func child(t *testing.T, parent int, name string) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		var pid, ppid int
		var command, state string
		// A name with a space in it is none that is looked for.
		if _, err := fmt.Sscanf(string(stat), "%d %s %s %d", &pid, &command, &state, &ppid); err == nil && ppid == parent && command == "("+name+")" {
			return pid
		}
	}
	t.Fatalf("process %d has not started any %s", parent, name)
	return 0
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("not killing process %d", pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
