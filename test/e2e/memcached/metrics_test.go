//go:build e2e

package memcached

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestMemcachedMetrics: an exporter beside the server, of which a new image
// does not restart memcached.
func TestMemcachedMetrics(t *testing.T) {
	e2e.NeedsLocalCluster(t, "it loads images of its own")
	e2e.Load(t, "./exporter", "exporter:1", "exporter:2")
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	e2e.Apply(t, ns, `
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: pool}
spec: {identity: Stable, metrics: {image: "exporter:1"}}
`)
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/pool")
	if err := mustDial(t, exposed(t, ns, "pool-0"), nil).fill(100); err != nil {
		t.Fatal(err)
	}
	exports := func() {
		t.Helper()
		pace.Eventually(t, time.Minute, func() error {
			out, err := e2e.TryKubectl("", "get", "--raw", "/api/v1/namespaces/"+ns+"/pods/pool-0:9150/proxy/metrics")
			if err == nil && !strings.Contains(out, "memcached_current_items 100") {
				err = fmt.Errorf("the exporter says %s", out)
			}
			return err
		})
	}
	exports()
	before := serverPods(t, ns, "pool")["pool-0"]

	e2e.Kubectl(t, "patch", "memcached", "pool", "-n", ns, "--type=merge", "-p", `{"spec":{"metrics":{"image":"exporter:2"}}}`)
	// Not by the image's name: both are the same bytes, and so the same image.
	pace.Eventually(t, 2*time.Minute, func() error {
		if now := containerID(serverPods(t, ns, "pool")["pool-0"], "exporter"); now == "" || now == containerID(before, "exporter") {
			return fmt.Errorf("the exporter's container is still %s", now)
		}
		return nil
	})
	e2e.Kubectl(t, "wait", "-n", ns, "--for=condition=Ready", e2e.Patience, "memcached/pool")
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
