//go:build e2e

package install

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/test/e2e"
)

// TestTakesInCoreOSClusters: EtcdClusters of the CoreOS operator, with its CRD, status and pods, are taken in where they
// are, as the guide has it. The stand-in of them is of etcd 3.5, and no operator of CoreOS has ever been there.
func TestTakesInCoreOSClusters(t *testing.T) {
	clean(t, "etcd")
	namespace := newNamespace(t)
	apply(t, coreosCRD)
	kubectl(t, "wait", "--for=condition=Established", "--timeout=1m", "crd/etcdclusters.etcd.database.coreos.com")
	const volumes = "pod: {persistentVolumeClaimSpec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}}"
	bare, kept := madeByCoreOS(t, namespace, "example", ""), madeByCoreOS(t, namespace, "kept", volumes)
	bare.serves()
	kept.serves()
	before := pods(t, namespace, "example")

	guide := func(name string, block int) {
		t.Helper()
		commands := e2e.GuideCommands(t, "moving/etcd.md", "In place, from the CoreOS operator", block+1)[block]
		e2e.RunGuide(t, namespace, strings.NewReplacer("example", name, "dist/install-etcd.yaml", current.yaml("etcd")).Replace(commands))
	}
	for _, name := range []string{"example", "kept"} {
		guide(name, 0) // pause
	}
	guide("example", 1) // install
	time.Sleep(5 * time.Second)
	if now := pods(t, namespace, "example"); now != before {
		t.Errorf("while it is paused, the pods are\n%s\nwere\n%s", now, before)
	}
	for _, name := range []string{"example", "kept"} {
		guide(name, 2) // hand over
	}
	bare.isTakenIn()
	kept.isTakenIn()
	if now := pods(t, namespace, "example"); now != before {
		t.Errorf("the pods are\n%s\nwere\n%s", now, before)
	}
	if users := kubectl(t, "get", "pods", "-n", namespace, "-l", "etcd_cluster=kept", "-o", "jsonpath={.items[*].spec.securityContext.runAsNonRoot}"); users != "true true true" {
		t.Errorf("of the pods with volumes these run as another user than root: %q", users)
	}
	guide("example", 3) // upgrade
	bare.isTakenIn()
}

// pods are those of an EtcdCluster, and how often they were started.
func pods(t *testing.T, namespace, name string) string {
	t.Helper()
	return kubectl(t, "get", "pods", "-n", namespace, "-l", "etcd_cluster="+name, "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}`)
}

// coreosCluster is an EtcdCluster that the CoreOS operator has left.
type coreosCluster struct {
	t               *testing.T
	namespace, name string
	id              string // of etcd's cluster
}

// madeByCoreOS makes an EtcdCluster with what that operator makes of it.
func madeByCoreOS(t *testing.T, namespace, name, pod string) *coreosCluster {
	t.Helper()
	var ends []string // of the members' names, which are longer than Fairlead's
	var initial []string
	for _, end := range []string{"795649v9kq", "bgx5v2jkw8", "zz8mlq2p4t"} {
		ends = append(ends, name+"-"+end)
		initial = append(initial, fmt.Sprintf("%s-%s=http://%[1]s-%[2]s.%[1]s.%[3]s.svc:2380", name, end, namespace))
	}
	values := []string{"NAMESPACE", namespace, "CLUSTER", name, "POD", pod, "INITIAL", strings.Join(initial, ","), "MEMBERS", strings.Join(ends, ", ")}
	apply(t, strings.NewReplacer(values...).Replace(coreosObject), "-n", namespace)
	values = append(values, "UID", kubectl(t, "get", "etcd", name, "-n", namespace, "-o", "jsonpath={.metadata.uid}"))
	apply(t, strings.NewReplacer(values...).Replace(coreosServices), "-n", namespace)
	for _, member := range ends {
		volume := "emptyDir: {}"
		values := append([]string{"MEMBER", member}, values...)
		if pod != "" {
			apply(t, strings.NewReplacer(values...).Replace(coreosClaim), "-n", namespace)
			volume = "persistentVolumeClaim: {claimName: " + member + "}"
		}
		apply(t, strings.NewReplacer(append(values, "VOLUME", volume)...).Replace(coreosPod), "-n", namespace)
	}
	return &coreosCluster{t: t, namespace: namespace, name: name}
}

func apply(t *testing.T, manifest string, args ...string) {
	t.Helper()
	if out, err := try(manifest, "kubectl", append([]string{"apply", "-f", "-"}, args...)...); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, manifest)
	}
}

// etcdctl runs etcdctl in the first pod, against the Service for clients.
func (c *coreosCluster) etcdctl(args ...string) (string, error) {
	c.t.Helper()
	pod := strings.Fields(kubectl(c.t, "get", "pods", "-n", c.namespace, "-l", "etcd_cluster="+c.name, "-o", "name"))[0]
	command := []string{"exec", "-n", c.namespace, pod, "-c", "etcd", "--", "etcdctl", "--command-timeout=10s", "--endpoints=http://" + c.name + "-client:2379"}
	return try("", "kubectl", append(command, args...)...)
}

// serves waits until the cluster serves, and gives it a key.
func (c *coreosCluster) serves() {
	c.t.Helper()
	kubectl(c.t, "wait", "-n", c.namespace, "--for=condition=Ready", "--timeout=3m", "pod", "-l", "etcd_cluster="+c.name)
	eventually(c.t, time.Minute, func() error {
		_, err := c.etcdctl("put", "/kept", "by CoreOS")
		return err
	})
	c.id = c.clusterID()
}

func (c *coreosCluster) clusterID() string {
	c.t.Helper()
	out, err := c.etcdctl("member", "list", "--write-out=fields")
	if err != nil {
		c.t.Fatal(err)
	}
	for line := range strings.Lines(out) {
		if id, found := strings.CutPrefix(line, `"ClusterID" : `); found {
			return strings.TrimSpace(id)
		}
	}
	c.t.Fatalf("no ID of the cluster: %s", out)
	return ""
}

// isTakenIn: it is the same cluster, with its members and its key.
func (c *coreosCluster) isTakenIn() {
	c.t.Helper()
	if got, err := c.etcdctl("get", "/kept", "--print-value-only"); err != nil || got != "by CoreOS\n" {
		c.t.Errorf("%s: the key is %q (%v)", c.name, got, err)
	}
	if id := c.clusterID(); id != c.id {
		c.t.Errorf("%s: its ID is %s, was %s", c.name, id, c.id)
	}
	names := kubectl(c.t, "get", "etcd", c.name, "-n", c.namespace, "-o", "jsonpath={.status.readyMembers} {.status.memberList[*].name}")
	for _, end := range []string{"3 ", "-795649v9kq", "-bgx5v2jkw8", "-zz8mlq2p4t"} {
		if !strings.Contains(names, end) {
			c.t.Errorf("%s: its members are %s", c.name, names)
		}
	}
}

// What the operator of 2020 made, by its source at 00fdc5e9db97 (pkg/util/k8sutil): the CRD has no schema and no status
// subresource, pods and Services are the EtcdCluster's. The probes ran a shell, which the images of today do not have.
const (
	coreosCRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: etcdclusters.etcd.database.coreos.com}
spec:
  group: etcd.database.coreos.com
  scope: Namespaced
  names: {kind: EtcdCluster, listKind: EtcdClusterList, plural: etcdclusters, singular: etcdcluster, shortNames: [etcd]}
  versions:
  - name: v1beta2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
	coreosObject = `
apiVersion: etcd.database.coreos.com/v1beta2
kind: EtcdCluster
metadata: {name: CLUSTER}
spec: {size: 3, version: 3.5.35, repository: quay.io/coreos/etcd, POD}
status:
  phase: Running
  controlPaused: false
  size: 3
  serviceName: CLUSTER-client
  clientPort: 2379
  currentVersion: 3.5.35
  targetVersion: ""
  members: {ready: [MEMBERS]}
  conditions:
  - {type: Available, status: "True", reason: Cluster available, message: "", lastUpdateTime: "2019-03-01T10:00:00Z", lastTransitionTime: "2019-03-01T10:00:00Z"}
`
	coreosServices = `
apiVersion: v1
kind: Service
metadata:
  name: CLUSTER
  labels: {app: etcd, etcd_cluster: CLUSTER}
  annotations: {service.alpha.kubernetes.io/tolerate-unready-endpoints: "true"}
  ownerReferences: [{apiVersion: etcd.database.coreos.com/v1beta2, kind: EtcdCluster, name: CLUSTER, uid: UID, controller: true}]
spec: {clusterIP: None, selector: {app: etcd, etcd_cluster: CLUSTER}, publishNotReadyAddresses: true, ports: [{name: client, port: 2379}, {name: peer, port: 2380}]}
---
apiVersion: v1
kind: Service
metadata:
  name: CLUSTER-client
  labels: {app: etcd, etcd_cluster: CLUSTER}
  annotations: {service.alpha.kubernetes.io/tolerate-unready-endpoints: "true"}
  ownerReferences: [{apiVersion: etcd.database.coreos.com/v1beta2, kind: EtcdCluster, name: CLUSTER, uid: UID, controller: true}]
spec: {selector: {app: etcd, etcd_cluster: CLUSTER}, ports: [{name: client, port: 2379}]}
`
	coreosClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  name: MEMBER
  labels: {app: etcd, etcd_cluster: CLUSTER}
  ownerReferences: [{apiVersion: etcd.database.coreos.com/v1beta2, kind: EtcdCluster, name: CLUSTER, uid: UID, controller: true}]
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
`
	coreosPod = `
apiVersion: v1
kind: Pod
metadata:
  name: MEMBER
  labels: {app: etcd, etcd_cluster: CLUSTER, etcd_node: MEMBER}
  annotations: {etcd.version: 3.5.35}
  ownerReferences: [{apiVersion: etcd.database.coreos.com/v1beta2, kind: EtcdCluster, name: CLUSTER, uid: UID, controller: true}]
spec:
  automountServiceAccountToken: false
  hostname: MEMBER
  subdomain: CLUSTER
  restartPolicy: Never
  initContainers:
  - name: check-dns
    image: busybox:1.35.0
    command: [/bin/sh, -c, "while ( ! nslookup MEMBER.CLUSTER.NAMESPACE.svc.cluster.local ); do sleep 1; done"]
  containers:
  - name: etcd
    image: quay.io/coreos/etcd:v3.5.35
    command:
    - /usr/local/bin/etcd
    - --data-dir=/var/etcd/data
    - --name=MEMBER
    - --initial-advertise-peer-urls=http://MEMBER.CLUSTER.NAMESPACE.svc:2380
    - --listen-peer-urls=http://0.0.0.0:2380
    - --listen-client-urls=http://0.0.0.0:2379
    - --advertise-client-urls=http://MEMBER.CLUSTER.NAMESPACE.svc:2379
    - --initial-cluster=INITIAL
    - --initial-cluster-state=new
    - --strict-reconfig-check=true
    - --listen-metrics-urls=http://0.0.0.0:2381
    - --initial-cluster-token=CLUSTER
    ports: [{name: server, containerPort: 2380}, {name: client, containerPort: 2379}]
    volumeMounts: [{name: etcd-data, mountPath: /var/etcd}]
    livenessProbe: {exec: {command: [etcdctl, endpoint, status]}, initialDelaySeconds: 10, timeoutSeconds: 10, periodSeconds: 60, failureThreshold: 3}
    readinessProbe: {exec: {command: [etcdctl, endpoint, status]}, initialDelaySeconds: 1, timeoutSeconds: 5, periodSeconds: 5, failureThreshold: 3}
  volumes: [{name: etcd-data, VOLUME}]
`
)
