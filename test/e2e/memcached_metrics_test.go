//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestMemcachedMetrics: an exporter beside the server, of which a new image
// does not restart memcached.
func TestMemcachedMetrics(t *testing.T) {
	needImages(t, newMemcached)
	program := filepath.Join(t.TempDir(), "exporter")
	build := exec.Command("go", "build", "-tags", "e2e", "-o", program, "./exporter")
	build.Env = append(build.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the exporter: %v\n%s", err, out)
	}
	for _, name := range []string{"exporter:1", "exporter:2"} {
		if out, err := exec.Command(filepath.Join(root, "bin", "localcluster"), "load", "--dir", clusterDir, name, program).CombinedOutput(); err != nil {
			t.Fatalf("load %s: %v\n%s", name, err, out)
		}
	}
	ns := newNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	apply(t, ns, `
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: pool}
spec: {identity: Stable, metrics: {image: "exporter:1"}}
`)
	kubectl(t, "wait", "-n", ns, "--for=condition=Ready", "--timeout=120s", "memcached/pool")
	if err := mustDial(t, exposed(t, ns, "pool-0"), nil).fill(100); err != nil {
		t.Fatal(err)
	}
	exports := func() {
		t.Helper()
		eventually(t, time.Minute, func() error {
			out, err := tryKubectl("", "get", "--raw", "/api/v1/namespaces/"+ns+"/pods/pool-0:9150/proxy/metrics")
			if err == nil && !strings.Contains(out, "memcached_current_items 100") {
				err = fmt.Errorf("the exporter says %s", out)
			}
			return err
		})
	}
	exports()
	before := serverPods(t, ns, "pool")["pool-0"]

	kubectl(t, "patch", "memcached", "pool", "-n", ns, "--type=merge", "-p", `{"spec":{"metrics":{"image":"exporter:2"}}}`)
	// Not by the image's name: both are the same bytes, and so the same image.
	eventually(t, 2*time.Minute, func() error {
		if now := containerID(serverPods(t, ns, "pool")["pool-0"], "exporter"); now == "" || now == containerID(before, "exporter") {
			return fmt.Errorf("the exporter's container is still %s", now)
		}
		return nil
	})
	kubectl(t, "wait", "-n", ns, "--for=condition=Ready", "--timeout=60s", "memcached/pool")
	exports()
	after := serverPods(t, ns, "pool")["pool-0"]
	if after.UID != before.UID {
		t.Error("the pod is another one")
	}
	if containerID(after, "memcached") != containerID(before, "memcached") {
		t.Error("memcached was restarted")
	}
}

func containerID(pod corev1.Pod, name string) string {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == name {
			return c.ContainerID
		}
	}
	return ""
}
