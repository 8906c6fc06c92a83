//go:build e2e

package network

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"example.com/fairlead/test/e2e"
)

// monitoring is the namespace that the policies name.
const monitoring = "monitoring"

// connect has a pod connect to addresses, such as members-client:2379.
func connect(t *testing.T, namespace, pod string, addresses ...string) {
	t.Helper()
	// Connected is what ends otherwise than with 1. A moment later, it is known whose address it was.
	const script = `
for a in "$@"; do
  n=0
  while timeout 3 nc -w 2 "${a%:*}" "${a##*:}" </dev/null >/dev/null; [ $? = 1 ] && [ $n -lt 60 ]; do n=$((n+1)); sleep 1; done
done
sleep 2`
	e2e.Kubectl(t, append([]string{
		"run", pod, "-n", namespace, "--image=busybox", "--image-pull-policy=IfNotPresent",
		"--restart=Never", "--attach", "--", "sh", "-c", script, "sh",
	}, addresses...)...)
}

// podIP is the address of one pod with labels.
func podIP(t *testing.T, namespace, labels string) string {
	t.Helper()
	return e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", labels, "-o", "jsonpath={.items[0].status.podIP}")
}

// life applies an object, and changes its spec, once it is ready, from one to the next.
func life(t *testing.T, namespace, object, manifest string, specs ...string) {
	t.Helper()
	wait := func() { e2e.Kubectl(t, "wait", "-n", namespace, "--for=condition=Ready", e2e.Patience, object) }
	e2e.Apply(t, namespace, manifest)
	wait()
	for _, spec := range specs {
		e2e.Kubectl(t, "patch", "-n", namespace, object, "--type=merge", "-p", `{"spec":`+spec+`}`)
		wait()
	}
}

func walkAt(t *testing.T, namespace string) {
	e2e.Apply(t, namespace, `
apiVersion: at.example.com/v1alpha1
kind: At
metadata: {name: example}
spec: {schedule: "2023-03-19T08:00:00Z", command: "echo hello"}
`)
	e2e.Kubectl(t, "wait", "-n", namespace, "--for=condition=Complete", e2e.Patience, "ats.at.example.com/example")
}

func walkEtcd(t *testing.T, namespace string) {
	life(t, namespace, "etcdcluster/members", `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: members}
spec: {size: 1, version: 3.6.15}
`, `{"size":2}`, `{"version":"3.6.16"}`)
	connect(t, namespace, "etcd-client", "members-client:2379")
	connect(t, monitoring, "etcd-scrape", podIP(t, namespace, "app=etcd")+":2381")

	address := net.JoinHostPort(e2e.Host(t), "443")
	e2e.ServeS3(t, address)
	e2e.Kubectl(t, "create", "secret", "generic", "aws", "-n", namespace, "--from-literal=credentials="+e2e.S3Credentials(e2e.S3Password))
	e2e.Apply(t, namespace, `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdBackup
metadata: {name: members}
spec: {etcdCluster: members, storageType: S3, verify: Restore, s3: {path: backups/example, `+e2e.S3Lines(address)+`}}
`)
	e2e.Kubectl(t, "wait", "-n", namespace, "--for=jsonpath={.status.lastProof.key}", e2e.Patience, "etcdbackup/members")
	e2e.Apply(t, namespace, `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdRestore
metadata: {name: members}
spec: {etcdCluster: {name: members}, backupStorageType: S3, s3: {path: backups/example, `+e2e.S3Lines(address)+`}}
`)
	e2e.Kubectl(t, "wait", "-n", namespace, "--for=jsonpath={.status.succeeded}=true", e2e.Patience, "etcdrestore/members")
	e2e.Kubectl(t, "wait", "-n", namespace, "--for=condition=Ready", e2e.Patience, "etcdcluster/members")
}

func walkMemcached(t *testing.T, namespace string) {
	const image = "exporter:of-network"
	e2e.Load(t, "../memcached/exporter", image)
	life(t, namespace, "memcached/servers", fmt.Sprintf(`
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: servers}
spec: {size: 1, version: 1.6.18, identity: Stable, port: 11311, memory: 64Mi, metrics: {image: %q}}
`, image), `{"memory":"96Mi"}`, `{"size":2}`, `{"upgrade":"Warm","version":"1.6.38"}`)
	server := podIP(t, namespace, "app=memcached")
	connect(t, namespace, "memcached-client", server+":11311")
	connect(t, monitoring, "memcached-scrape", server+":9150")
}

func walkWebServer(t *testing.T, namespace string) {
	cert, key := e2e.Certificate(t, "example.com")
	e2e.Kubectl(t, "create", "secret", "tls", "certificate", "-n", namespace, "--cert="+cert, "--key="+key)
	life(t, namespace, "webserver/web", `
apiVersion: my.domain/v1
kind: WebServer
metadata: {name: web}
spec: {image: "nginx:1.22.1", replicas: 1, tls: {secretName: certificate}}
`, `{"replicas":2}`, `{"image":"nginx:1.26.3"}`)
	connect(t, namespace, "browser", "web-service:80", "web-service:443")
}

func walkManagers(t *testing.T, _ string) {
	var addresses []string
	for _, operator := range operators {
		addresses = append(addresses, strings.ReplaceAll("OP-operator-controller-manager-metrics-service.OP-operator-system:8443", "OP", operator))
	}
	connect(t, monitoring, "managers-scrape", addresses...)
}
