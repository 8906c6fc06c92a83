//go:build cluster

// These tests run real clusters, as root: go test -tags cluster .
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/fairlead/localcluster/internal/host"
)

// program is localcluster, built for the tests; cache has the parts.
var program, cache string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "localcluster-test-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "localcluster")
	if cache, err = filepath.Abs("../.cluster"); err != nil {
		panic(err)
	}
	code := 1
	build := exec.Command("go", "build", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // it is loaded as an image, too
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("build localcluster: %v\n%s", err, out)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// A cluster from up to down, with what its users do in between.
func TestWorkloads(t *testing.T) {
	c := newTestCluster(t)
	out := c.up()
	ready := regexp.MustCompile(`([0-9.]+) s: the node is ready`).FindStringSubmatch(out)
	if ready == nil {
		t.Fatalf("up does not say when the node was ready:\n%s", out)
	}
	t.Logf("the node was ready after %s s", ready[1])
	if seconds, _ := strconv.ParseFloat(ready[1], 64); seconds > 8 {
		t.Errorf("the node was ready after %s s, want at most 8 on an idle machine", ready[1])
	}
	nodeIP := c.entry().NodeIP().String()

	t.Run("a pod prints hello world", func(t *testing.T) {
		c.kubectl("run", "hello", "--image=busybox", "--image-pull-policy=IfNotPresent", "--restart=Never", "--", "echo", "hello world")
		c.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/hello", "--timeout=30s")
		if got := c.kubectl("logs", "hello"); got != "hello world\n" {
			t.Errorf("the pod's log is %q", got)
		}
	})

	c.apply(workload)
	c.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	t.Run("exec, DNS, and the Service at its name from inside", func(t *testing.T) {
		got := c.kubectl("exec", "deployment/web", "--", "wget", "-qO-", "http://web.default.svc.cluster.local")
		if !strings.HasPrefix(got, "web-") {
			t.Errorf("the Service answers %q, want a pod's name", got)
		}
	})
	t.Run("the NodePort from the host", func(t *testing.T) {
		response, err := (&http.Client{Timeout: 5 * time.Second}).Get("http://" + nodeIP + ":30080")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		if body, _ := io.ReadAll(response.Body); !strings.HasPrefix(string(body), "web-") {
			t.Errorf("the NodePort answers %q, want a pod's name", body)
		}
	})
	t.Run("a volume that an unprivileged pod can write to", func(t *testing.T) {
		if got := c.kubectl("get", "pvc", "data", "-o", "jsonpath={.status.phase}"); got != "Bound" {
			t.Errorf("the claim is %s", got)
		}
		if got := c.kubectl("exec", "deployment/web", "--", "cat", "/data/written"); got != "by 65532\n" {
			t.Errorf("the volume has %q", got)
		}
	})
	t.Run("an image that does not exist fails at once", func(*testing.T) {
		c.kubectl("run", "nosuch", "--image=nosuch:1")
		c.kubectl("wait", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImagePull", "pod/nosuch", "--timeout=10s")
	})
	t.Run("a loaded image", func(t *testing.T) {
		c.run("load", "--dir", c.dir, "tool:dev", program)
		c.kubectl("run", "tool", "--image=tool:dev", "--restart=Never", "--", "help")
		c.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/tool", "--timeout=30s")
		if got := c.kubectl("logs", "tool"); !strings.Contains(got, "localcluster up") {
			t.Errorf("the pod's log is %q", got)
		}
	})
	t.Run("the audit log has one line per request", func(t *testing.T) {
		log, err := os.ReadFile(filepath.Join(c.dir, "log", "audit.log"))
		if err != nil {
			t.Fatal(err)
		}
		count := 0
		for line := range bytes.Lines(log) {
			var event struct {
				Stage, Verb string
				ObjectRef   struct{ Name, Resource string }
			}
			if err := json.Unmarshal(line, &event); err != nil {
				t.Fatal(err)
			}
			if event.Stage != "ResponseComplete" {
				t.Fatalf("a line of stage %s", event.Stage)
			}
			if event.Verb == "create" && event.ObjectRef.Resource == "services" && event.ObjectRef.Name == "web" ||
				event.Verb == "patch" && event.ObjectRef.Resource == "services" && event.ObjectRef.Name == "web" {
				count++
			}
		}
		if count != 1 {
			t.Errorf("the Service was written %d times, want 1", count)
		}
	})
	t.Run("up again", func(t *testing.T) {
		if out := c.up(); !strings.Contains(out, "up already") {
			t.Errorf("up says\n%s", out)
		}
	})
	t.Run("down, twice", func(*testing.T) {
		entry := c.entry()
		c.down()
		c.nothingLeft(entry)
		c.down()
	})
}

// Two clusters side by side, and whatever kills them.
func TestKilled(t *testing.T) {
	first, second := newTestCluster(t), newTestCluster(t)
	first.up()
	second.up()
	first.apply(workload)
	second.apply(workload)
	first.kubectl("rollout", "status", "deployment/web", "--timeout=60s")
	second.kubectl("rollout", "status", "deployment/web", "--timeout=60s")

	t.Run("kill -9 of PID 1 leaves nothing, and not the other cluster", func(t *testing.T) {
		entry := first.entry()
		kill(t, entry.Init.PID)
		first.nothingLeft(entry)
		second.kubectl("get", "--raw=/readyz")
	})
	t.Run("up over a killed cluster", func(t *testing.T) {
		first.up()
		if got := first.kubectl("get", "deployments", "-o", "name"); got != "" {
			t.Errorf("the new cluster has the old one's %s", got)
		}
	})
	t.Run("kill -9 of the keeper, and up in another folder cleans up", func(t *testing.T) {
		entry := second.entry()
		kill(t, entry.Keeper)
		third := newTestCluster(t)
		third.up()
		second.nothingLeft(entry)
		third.down()
	})
	t.Run("a component that dies ends the cluster", func(t *testing.T) {
		entry := first.entry()
		kill(t, child(t, entry.Init.PID, "etcd"))
		first.nothingLeft(entry)
		log, _ := os.ReadFile(filepath.Join(first.dir, "log", "supervisor.log"))
		if !strings.Contains(string(log), "etcd has ended: killed") {
			t.Errorf("the supervisor's log does not say why:\n%s", log)
		}
	})
	t.Run("a folder that vanishes", func(t *testing.T) {
		second.up()
		entry := second.entry()
		_ = os.RemoveAll(second.dir) // may fail, as the cluster writes to it
		second.nothingLeft(entry)
		eventually(t, "the folder is gone", func() bool { _, err := os.Stat(second.dir); return os.IsNotExist(err) })
	})
}

// A cluster for one command.
func TestRun(t *testing.T) {
	t.Run("passes on the exit code and leaves nothing", func(t *testing.T) {
		cmd := exec.Command(program, "run", "--cache", cache, "--", "sh", "-c", "kubectl get nodes -o name && echo $LOCALCLUSTER_DIR && exit 7")
		out, _ := cmd.Output()
		if cmd.ProcessState.ExitCode() != 7 || !strings.HasPrefix(string(out), "node/localcluster\n/") {
			t.Errorf("run: exit code %d, output %q", cmd.ProcessState.ExitCode(), out)
		}
		dir := strings.TrimSpace(strings.TrimPrefix(string(out), "node/localcluster\n"))
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s is still there", dir)
		}
	})
	t.Run("ends when it is killed", func(t *testing.T) {
		c := newTestCluster(t)
		cmd := exec.Command(program, "run", "--dir", c.dir, "--cache", cache, "--", "sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ready := filepath.Join(c.dir, "kubeconfig")
		eventually(t, "the cluster starts", func() bool { _, err := os.Stat(ready); return err == nil })
		entry := c.entry()
		kill(t, cmd.Process.Pid)
		_ = cmd.Wait()
		c.nothingLeft(entry)
	})
}

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

func (c *testCluster) up() string { return c.run("up", "--dir", c.dir, "--cache", cache) }

func (c *testCluster) down() { c.run("down", "--dir", c.dir) }

func (c *testCluster) kubectl(args ...string) string {
	c.t.Helper()
	return c.execute(filepath.Join(c.dir, "bin", "kubectl"), append([]string{"--kubeconfig=" + filepath.Join(c.dir, "kubeconfig")}, args...)...)
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
			if data, _ := os.ReadFile(file); strings.Contains(string(data), entry.Cgroup()) {
				return false
			}
		}
		_, keeper := os.Stat(fmt.Sprintf("/proc/%d", entry.Keeper))
		_, init := os.Stat(fmt.Sprintf("/proc/%d", entry.Init.PID))
		return os.IsNotExist(keeper) && os.IsNotExist(init)
	})
	eventually(c.t, "no cgroup folder", func() bool {
		v1, _ := filepath.Glob("/sys/fs/cgroup/*/" + entry.Cgroup())
		v2, _ := filepath.Glob("/sys/fs/cgroup/" + entry.Cgroup())
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
	for deadline := time.Now().Add(20 * time.Second); !check(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 20 s: %s", what)
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

const workload = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 0
      securityContext: {runAsNonRoot: true, runAsUser: 65532, fsGroup: 65532, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: web
        image: busybox
        imagePullPolicy: IfNotPresent
        command: [sh, -c, "hostname > /tmp/index.html; echo by $(id -u) > /data/written; exec httpd -f -p 80 -h /tmp"]
        readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {type: NodePort, selector: {app: web}, ports: [{port: 80, nodePort: 30080}]}
`
