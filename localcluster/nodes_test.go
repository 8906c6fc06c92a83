//go:build cluster

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/localcluster/internal/pace"
)

// Three nodes in three zones, and one of them off for a while.
func TestNodes(t *testing.T) {
	t.Parallel()
	c := newTestCluster(t)
	out := c.up("--nodes", "3", "--zones", "a,b,c")
	api, ready := secondsUntil(t, out, "the API server is ready"), secondsUntil(t, out, "every node is ready")
	t.Logf("the nodes were ready %.1f s after the API server", ready-api)
	if limit := 30 * pace.Slowness(); ready-api > limit {
		t.Errorf("that is more than %.0f s on a machine this fast", limit)
	}
	const nodes = `{range .items[*]}{.metadata.name} {.metadata.labels.topology\.kubernetes\.io/zone} ` +
		`{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`
	if got, want := c.kubectl("get", "nodes", "-o", "jsonpath="+nodes),
		"localcluster a True\nlocalcluster-2 b True\nlocalcluster-3 c True\n"; got != want {
		t.Errorf("the nodes are\n%swant\n%s", got, want)
	}

	c.apply(spread)
	c.wait(time.Minute, "rollout", "status", "deployment/spread")
	c.wait(time.Minute, "rollout", "status", "statefulset/disk")
	pods := c.spreadPods()
	first, second := podOn(t, pods, "localcluster"), podOn(t, pods, "localcluster-2")

	t.Run("a Deployment spreads over the zones", func(t *testing.T) {
		var nodes []string
		for _, pod := range pods {
			nodes = append(nodes, pod.node)
		}
		slices.Sort(nodes)
		if want := []string{"localcluster", "localcluster-2", "localcluster-3"}; !slices.Equal(nodes, want) {
			t.Errorf("its pods are on %v, want %v", nodes, want)
		}
	})
	t.Run("a pod on each node reaches those on the others, the Service by its name, and the API server", func(t *testing.T) {
		for _, from := range pods {
			for _, to := range pods {
				eventually(t, from.name+" reaches "+to.name, func() bool { return c.fetch(from, to.ip) == to.name })
			}
			eventually(t, from.name+" reaches the Service", func() bool {
				return strings.HasPrefix(c.fetch(from, "spread.default.svc.cluster.local"), "spread-")
			})
			eventually(t, from.name+" reaches the API server", func() bool { return c.asksAPI(from) })
		}
	})
	t.Run("the NodePort of every node from the host", func(t *testing.T) {
		for n := range 3 {
			ip := c.entry().NodeIP(n).String()
			eventually(t, ip+" answers", func() bool { return c.nodePort(ip) })
		}
	})
	t.Run("a volume of the class shared, on any node", func(t *testing.T) {
		c.apply(shared)
		c.once("localcluster-2", "echo written > /data/file")
		if got := c.once("localcluster-3", "cat /data/file"); got != "written\n" {
			t.Errorf("what another node wrote is %q", got)
		}
	})
	t.Run("a node that is paused does not answer, and goes on later", func(t *testing.T) {
		c.run("node", "--dir", c.dir, "localcluster-2", "pause")
		if got := c.fetch(first, second.ip); got != "" {
			t.Errorf("a pod on it answers %q", got)
		}
		c.run("node", "--dir", c.dir, "localcluster-2", "resume")
		eventually(t, "it answers afterwards", func() bool { return c.fetch(first, second.ip) == second.name })
	})
	c.cuts(first, second, podOn(t, pods, "localcluster-3")) // and the last cut, of localcluster-2 from -3, stays
	t.Run("a node is off, and on again with its files", func(t *testing.T) {
		entry := c.entry()
		c.run("node", "--dir", c.dir, "localcluster-3", "off")
		if alive := processesOf(entry.Cgroup(2)); len(alive) > 0 {
			t.Errorf("of its pods there are still the processes %v", alive)
		}
		c.wait(90*time.Second, "wait", "--for=condition=Ready=Unknown", "node/localcluster-3")
		c.run("node", "--dir", c.dir, "localcluster-3", "on")
		c.wait(10*time.Second, "wait", "--for=condition=Ready", "node/localcluster-3")
		eventually(t, "the pod with a disk starts a second time, and has what it wrote", func() bool {
			boots, err := c.command("exec", "disk-0", "--", "cat", "/data/boots").Output()
			return err == nil && string(boots) == "boot\nboot\n"
		})
		third := podOn(t, c.spreadPods(), "localcluster-3")
		eventually(t, "a pod on it serves again", func() bool {
			third = podOn(t, c.spreadPods(), "localcluster-3") // it has another address
			return c.fetch(first, third.ip) == third.name
		})
		if c.fetch(third, second.ip) != "" {
			t.Error("it is not cut from localcluster-2 any more")
		}
		c.run("heal", "--dir", c.dir)
		eventually(t, "pods reach each other as before", func() bool {
			return c.fetch(first, third.ip) == third.name && c.fetch(third, second.ip) == second.name
		})
	})
	t.Run("a node whose Node was deleted while it was off registers again", func(t *testing.T) {
		c.run("node", "--dir", c.dir, "localcluster-3", "off")
		c.kubectl("delete", "node", "localcluster-3")
		c.run("node", "--dir", c.dir, "localcluster-3", "on")
		c.wait(10*time.Second, "wait", "--for=condition=Ready", "node/localcluster-3")
		got := c.once("localcluster-3", "until timeout 2 wget -qO- http://spread.default.svc.cluster.local; do sleep 0.1; done; cat /data/file")
		if !strings.HasPrefix(got, "spread-") || !strings.HasSuffix(got, "\nwritten\n") {
			t.Errorf("a pod on it says %q", got)
		}
	})
	t.Run("a volume that is deleted leaves no folder", func(t *testing.T) {
		pv := c.kubectl("get", "pvc", "shared", "-o", "jsonpath={.spec.volumeName}")
		folders := filepath.Join(c.dir, "nodes", "*", "var/lib/volumes", pv)
		if found, _ := filepath.Glob(folders); len(found) != 1 {
			t.Errorf("the volume has the folders %v", found)
		}
		c.kubectl("delete", "pvc/shared")
		eventually(t, "none is left", func() bool { found, _ := filepath.Glob(folders); return len(found) == 0 })
	})
	t.Run("the first node cannot be switched off", func(t *testing.T) {
		out, err := exec.Command(program, "node", "--dir", c.dir, "localcluster", "off").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "control plane") {
			t.Errorf("it says %q (%v)", out, err)
		}
	})
	t.Run("a component of a further node that dies ends the cluster", func(t *testing.T) {
		entry := c.entry()
		kill(t, child(t, child(t, entry.Init.PID, "exe"), "kubelet"))
		c.nothingLeft(entry)
		log, _ := os.ReadFile(filepath.Join(c.dir, "log", "supervisor.log"))
		if !regexp.MustCompile(`localcluster-\d has ended: .*kubelet has ended: killed`).Match(regexp.MustCompile(`\s+`).ReplaceAll(log, []byte(" "))) {
			t.Errorf("the supervisor's log does not say why:\n%s", log)
		}
	})
}

// secondsUntil is when up has said that it has reached something.
func secondsUntil(t *testing.T, out, milestone string) float64 {
	t.Helper()
	found := regexp.MustCompile(`([0-9.]+) s: ` + milestone).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("up does not say when %s:\n%s", milestone, out)
	}
	seconds, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return seconds
}

type pod struct{ name, node, ip string }

func (c *testCluster) spreadPods() []pod {
	c.t.Helper()
	var pods []pod
	const each = `{range .items[*]}{.metadata.name} {.spec.nodeName} {.status.podIP}{"\n"}{end}`
	for line := range strings.Lines(c.kubectl("get", "pods", "-l", "app=spread", "-o", "jsonpath="+each)) {
		fields := append(strings.Fields(line), "") // without an address it is just starting
		pods = append(pods, pod{name: fields[0], node: fields[1], ip: fields[2]})
	}
	return pods
}

func podOn(t *testing.T, pods []pod, node string) pod {
	t.Helper()
	i := slices.IndexFunc(pods, func(p pod) bool { return p.node == node })
	if i < 0 {
		t.Fatalf("no pod is on %s: %v", node, pods)
	}
	return pods[i]
}

// fetch is what a server answers a pod, without the line's end.
func (c *testCluster) fetch(from pod, host string) string {
	answer, _ := c.command("exec", from.name, "--", "timeout", "2", "wget", "-qO-", "http://"+host).Output()
	return strings.TrimSpace(string(answer))
}

// once is what a shell's command says in a pod on a node that has the volume of
// the claim named shared.
func (c *testCluster) once(node, command string) string {
	c.t.Helper()
	c.apply(fmt.Sprintf(once, node, command))
	c.wait(30*time.Second, "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/once")
	defer c.kubectl("delete", "pod/once", "--now")
	return c.kubectl("logs", "once")
}

// nodePort says whether a node's answers the host.
func (c *testCluster) nodePort(ip string) bool {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + net.JoinHostPort(ip, "30080"))
	if err != nil {
		return false
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	return strings.HasPrefix(string(body), "spread-")
}

// processesOf are those in a cgroup folder or below.
func processesOf(cgroup string) []string {
	var found []string
	files, _ := filepath.Glob("/proc/[0-9]*/cgroup")
	for _, file := range files {
		if data, _ := os.ReadFile(file); strings.Contains(string(data), "/"+cgroup+"/") {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}

const spread = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: spread}
spec:
  replicas: 3
  selector: {matchLabels: {app: spread}}
  template:
    metadata: {labels: {app: spread}}
    spec:
      terminationGracePeriodSeconds: 0
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: topology.kubernetes.io/zone
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: spread}}
      containers:
      - name: web
        image: busybox
        imagePullPolicy: IfNotPresent
        command: [sh, -c, "hostname > /tmp/index.html; exec httpd -f -p 80 -h /tmp"]
        readinessProbe: {tcpSocket: {port: 80}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: spread}
spec: {type: NodePort, selector: {app: spread}, ports: [{port: 80, nodePort: 30080}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: disk}
spec:
  replicas: 1
  serviceName: disk
  selector: {matchLabels: {app: disk}}
  template:
    metadata: {labels: {app: disk}}
    spec:
      terminationGracePeriodSeconds: 0
      nodeSelector: {kubernetes.io/hostname: localcluster-3}
      containers:
      - name: disk
        image: busybox
        imagePullPolicy: IfNotPresent
        command: [sh, -c, "echo boot >> /data/boots; exec sleep 10000"]
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

const shared = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: shared}
spec: {storageClassName: shared, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
`

const once = `
apiVersion: v1
kind: Pod
metadata: {name: once}
spec:
  restartPolicy: Never
  nodeSelector: {kubernetes.io/hostname: %s}
  securityContext: {runAsUser: 65532, fsGroup: 65532}
  containers:
  - name: once
    image: busybox
    imagePullPolicy: IfNotPresent
    command: [sh, -c, %q]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: shared}}]
`
