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

	"golang.org/x/sys/unix"

	"example.com/fairlead/localcluster/internal/pace"
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
	before := kernelSettings(t)
	out := c.up()
	ready := regexp.MustCompile(`([0-9.]+) s: every node is ready`).FindStringSubmatch(out)
	if ready == nil {
		t.Fatalf("up does not say when its node was ready:\n%s", out)
	}
	t.Logf("the node was ready after %s s", ready[1])
	// Four on an idle machine; a step that waits for something to time out takes more than this.
	limit := 30 * pace.Slowness()
	if seconds, _ := strconv.ParseFloat(ready[1], 64); seconds > limit {
		t.Errorf("the node was ready after %s s, want at most %.0f on a machine this fast", ready[1], limit)
	}
	nodeIP := c.entry().NodeIP(0).String()

	t.Run("a pod prints hello world", func(t *testing.T) {
		c.kubectl("run", "hello", "--image=busybox", "--image-pull-policy=IfNotPresent", "--restart=Never", "--", "echo", "hello world")
		c.wait(30*time.Second, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/hello")
		if got := c.kubectl("logs", "hello"); got != "hello world\n" {
			t.Errorf("the pod's log is %q", got)
		}
	})

	t.Run("the kubelet's settings of the kernel are its own", func(t *testing.T) {
		c.sameKernelSettings(before)
		for setting, want := range map[string]string{"vm/overcommit_memory": "1", "kernel/panic": "10", "kernel/panic_on_oops": "1"} {
			path := fmt.Sprintf("/proc/%d/root/proc/sys/%s", c.entry().Init.PID, setting)
			if got, err := os.ReadFile(path); err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("inside, %s is %q (%v), want the kubelet's %s", setting, got, err, want)
			}
			var fsType syscall.Statfs_t
			if err := syscall.Statfs(path, &fsType); err != nil || fsType.Type == unix.PROC_SUPER_MAGIC {
				t.Errorf("inside, %s is the kernel's (%v)", setting, err)
			}
		}
	})

	c.apply(workload)
	c.wait(time.Minute, "rollout", "status", "deployment/web")
	t.Run("exec, DNS, and the Service at its name from inside", func(t *testing.T) {
		// That the pods are ready is known before kube-proxy has written its rules, on a busy
		// machine by seconds; until then nothing has the Service's address.
		eventually(t, "a pod's name as the Service's answer", func() bool {
			answer, err := c.command("exec", "deployment/web", "--", "wget", "-qO-", "http://web.default.svc.cluster.local").Output()
			return err == nil && strings.HasPrefix(string(answer), "web-")
		})
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
		c.wait(10*time.Second, "wait", "--for=jsonpath={.status.containerStatuses[0].state.waiting.reason}=ErrImagePull", "pod/nosuch")
	})
	t.Run("a loaded image", func(t *testing.T) {
		c.run("load", "--dir", c.dir, "tool:dev", program)
		c.kubectl("run", "tool", "--image=tool:dev", "--restart=Never", "--", "help")
		c.wait(30*time.Second, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/tool")
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
	t.Run("an image that is asked for later has its packages from the cache", func(t *testing.T) {
		c.run("image", "--dir", c.dir, "memcached:1.6.18")
		if _, err := os.Stat(filepath.Join(c.dir, "packages")); !os.IsNotExist(err) {
			t.Errorf("packages were fetched into the cluster's own folder (%v)", err)
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
		c.sameKernelSettings(before)
	})
}

// Two clusters side by side, and whatever kills them.
func TestKilled(t *testing.T) {
	first, second := newTestCluster(t), newTestCluster(t)
	first.up()
	second.up()
	first.apply(workload)
	second.apply(workload)
	first.wait(time.Minute, "rollout", "status", "deployment/web")
	second.wait(time.Minute, "rollout", "status", "deployment/web")

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
