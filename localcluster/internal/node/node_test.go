package node

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"example.com/fairlead/localcluster/internal/host"
)

var spec = NewSpec(host.Entry{
	ID: "1", Dir: "/somewhere/.cluster", Nodes: 3, Zones: []string{"a", "b"}, Domain: "cluster.local",
	Families: []host.Family{host.IPv4}, Nets: prefixes("198.18.0.0/29"),
}, "localcluster/pause:1")

// ipv6 is a cluster with IPv6 only, and dual one with IPv6 first, under another domain.
var (
	ipv6 = NewSpec(host.Entry{Nodes: 1, Domain: "cluster.local", Families: []host.Family{host.IPv6}, Nets: prefixes("fd6c::/64")}, "")
	dual = NewSpec(host.Entry{
		Nodes: 2, Domain: "example.internal", Families: []host.Family{host.IPv6, host.IPv4}, Nets: prefixes("fd6c::/64", "198.18.0.0/29"),
	}, "")
)

func prefixes(list ...string) (all []netip.Prefix) {
	for _, prefix := range list {
		all = append(all, netip.MustParsePrefix(prefix))
	}
	return all
}

func TestNewSpec(t *testing.T) {
	want := []Node{
		{Name: "localcluster", Addresses: prefixes("198.18.0.2/29"), Zone: "a", Cgroup: "localcluster-1", Pods: prefixes("10.244.0.0/20")},
		{Name: "localcluster-2", Addresses: prefixes("198.18.0.3/29"), Zone: "b", Cgroup: "localcluster-1-2", Pods: prefixes("10.244.16.0/20")},
		{Name: "localcluster-3", Addresses: prefixes("198.18.0.4/29"), Zone: "a", Cgroup: "localcluster-1-3", Pods: prefixes("10.244.32.0/20")},
	}
	if !reflect.DeepEqual(spec.Nodes, want) {
		t.Errorf("the nodes are\n%+v, want\n%+v", spec.Nodes, want)
	}
	second := Node{Name: "localcluster-2", Addresses: prefixes("fd6c::3/64", "198.18.0.3/29"), Cgroup: "localcluster--2",
		Pods: prefixes("fd00:10:244:1::/64", "10.244.16.0/20")}
	if !reflect.DeepEqual(dual.Nodes[1], second) {
		t.Errorf("with both families, the second node is\n%+v, want\n%+v", dual.Nodes[1], second)
	}
	one := ipv6
	if one.Link != host.NodeLink || one.Nodes[0].Zone != "" {
		t.Errorf("one node has the link %q and the zone %q, want no bridge and no zone", one.Link, one.Nodes[0].Zone)
	}
	for family, of := range networksOf {
		if last := podsOf(family, MaxNodes-1); !of.pods.Contains(last.Addr()) {
			t.Errorf("the pods of the last node are in %s, want a part of %s", last, of.pods)
		}
	}
}

func TestEtc(t *testing.T) {
	all, err := newEtc(spec)
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range all {
		checkSyntax(t, files)
	}
	wants := map[string]string{
		"kubernetes/kubelet.yaml":     "cgroupRoot: /localcluster-1\n",
		"containerd/config.toml":      `sandbox_image = "localcluster/pause:1"`,
		"cni/net.d/10-pods.conflist":  `"subnet": "10.244.0.0/20"`,
		"kubernetes/admin.kubeconfig": "server: https://198.18.0.2:6443\n",
		"hosts":                       "198.18.0.2 localcluster\n",
	}
	for name, want := range wants {
		if !strings.Contains(string(all[0][name]), want) {
			t.Errorf("%s lacks %q:\n%s", name, want, all[0][name])
		}
	}
	wants = map[string]string{
		"kubernetes/kubelet.yaml":       "cgroupRoot: /localcluster-1-3\n",
		"kubernetes/kube-proxy.yaml":    "hostnameOverride: localcluster-3\n",
		"cni/net.d/10-pods.conflist":    `"subnet": "10.244.32.0/20"`,
		"kubernetes/kubelet.kubeconfig": "server: https://198.18.0.2:6443\n",
		"hosts":                         "198.18.0.4 localcluster-3\n",
	}
	for name, want := range wants {
		if !strings.Contains(string(all[2][name]), want) {
			t.Errorf("on the third node, %s lacks %q:\n%s", name, want, all[2][name])
		}
	}
	wants = map[string]string{
		"kubernetes/kubelet.yaml":       "clusterDomain: example.internal\nclusterDNS: [\"fd00:10:96::a\"]\n",
		"kubernetes/kube-proxy.yaml":    `clusterCIDR: "fd00:10:244::/56,10.244.0.0/16"`,
		"kubernetes/kubelet.kubeconfig": "server: https://[fd6c::2]:6443\n",
		"hosts":                         "fd6c::3 localcluster-2\n198.18.0.3 localcluster-2\n",
		"cni/net.d/10-pods.conflist": `"ranges": [[{"subnet": "fd00:10:244:1::/64"}], [{"subnet": "10.244.16.0/20"}]],
        "routes": [{"dst": "::/0"}, {"dst": "0.0.0.0/0"}]`,
	}
	both, err := newEtc(dual)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range wants {
		if !strings.Contains(string(both[1][name]), want) {
			t.Errorf("with both families, %s lacks %q:\n%s", name, want, both[1][name])
		}
	}
	checkSyntax(t, both[1])
	for _, secret := range []string{"pki/ca.key", "pki/apiserver.key", "admin.kubeconfig"} {
		if _, ok := all[2]["kubernetes/"+secret]; ok {
			t.Errorf("the third node has %s, which is the control plane's", secret)
		}
		if _, ok := all[0]["kubernetes/"+secret]; !ok {
			t.Errorf("the first node lacks %s", secret)
		}
	}
}

func checkSyntax(t *testing.T, files map[string][]byte) {
	t.Helper()
	for name, content := range files {
		if strings.Contains(string(content), "<no value>") {
			t.Errorf("%s has a field that was not filled in:\n%s", name, content)
		}
		switch {
		case strings.HasSuffix(name, ".yaml"), strings.HasSuffix(name, ".kubeconfig"):
			if err := yaml.UnmarshalStrict(content, &map[string]any{}); err != nil {
				t.Errorf("%s: %v\n%s", name, err, content)
			}
		case strings.HasSuffix(name, ".conflist"):
			if !json.Valid(content) {
				t.Errorf("%s is not JSON:\n%s", name, content)
			}
		}
	}
}

func TestCheckNode(t *testing.T) {
	since := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	object := func(status, at string) string {
		return `{"status": {"conditions": [{"type": "DiskPressure", "status": "False"},
			{"type": "Ready", "status": "` + status + `", "message": "why", "lastHeartbeatTime": "` + at + `"}]}}`
	}
	cases := map[string]struct{ object, want string }{
		"ready":                   {object: object("True", "2026-01-02T12:00:00Z")},
		"ready before it was off": {object: object("True", "2026-01-02T11:59:59Z"), want: "has not registered"},
		"not ready":               {object: object("False", "2026-01-02T12:00:01Z"), want: "the node is not ready: why"},
		"no node":                 {object: `{"kind": "Status", "status": {}}`, want: "has not registered"},
	}
	for name, tc := range cases {
		err := checkNode(strings.NewReader(tc.object), since)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
}

func TestDescendants(t *testing.T) {
	parents := map[int]int{1: 0, 10: 1, 11: 10, 12: 11, 20: 1, 21: 20}
	got := descendants(parents, 10)
	slices.Sort(got)
	if !slices.Equal(got, []int{10, 11, 12}) {
		t.Errorf("the descendants of 10 are %v, want it, its child and its grandchild", got)
	}
	parents, err := processTree()
	if err != nil || parents[os.Getpid()] != os.Getppid() {
		t.Errorf("this process's parent is %d (%v), want %d", parents[os.Getpid()], err, os.Getppid())
	}
}

func TestCredentials(t *testing.T) {
	c, err := newCredentials(spec)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(c.ca.cert)

	server := certificate(t, c.files["apiserver.crt"])
	for _, host := range []string{"198.18.0.2", "127.0.0.1", "10.96.0.1", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"} {
		if _, err := server.Verify(x509.VerifyOptions{Roots: roots, DNSName: host}); err != nil {
			t.Errorf("the API server's certificate at %s: %v", host, err)
		}
	}
	both, err := newCredentials(dual)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"[fd6c::2]", "198.18.0.2", "[fd00:10:96::1]", "kubernetes.default.svc.example.internal"} {
		if err := certificate(t, both.files["apiserver.crt"]).VerifyHostname(host); err != nil {
			t.Errorf("with both families, under another domain, the API server's certificate at %s: %v", host, err)
		}
	}
	for _, node := range spec.Nodes {
		kubelet := certificate(t, c.of(node)["kubelet.crt"])
		if _, err := kubelet.Verify(x509.VerifyOptions{Roots: roots, DNSName: node.IP().String()}); err != nil {
			t.Errorf("the certificate of the kubelet of %s: %v", node.Name, err)
		}
	}
	kubelet := certificate(t, c.clients["system:node:localcluster-2"].cert)
	if _, err := kubelet.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("the kubelet's certificate: %v", err)
	}
	if got := kubelet.Subject.Organization; !slices.Equal(got, []string{"system:nodes"}) {
		t.Errorf("the kubelet is in the groups %q, want system:nodes", got)
	}
	front := certificate(t, c.files["front-proxy-client.crt"])
	if _, err := front.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		t.Error("the front proxy's certificate passes as a user's")
	}
}

func certificate(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}
