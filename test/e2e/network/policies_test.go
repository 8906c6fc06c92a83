package network

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// read is the policies of a file, in a namespace.
func read(t *testing.T, namespace, operator string) []networkingv1.NetworkPolicy {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "operators", operator, "config", "network", "workloads.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var policies []networkingv1.NetworkPolicy
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		policy := networkingv1.NetworkPolicy{}
		if err := yaml.UnmarshalStrict([]byte(document), &policy); err != nil {
			t.Fatal(err)
		}
		policy.Namespace = namespace
		policies = append(policies, policy)
	}
	return policies
}

var (
	member = end{name: "member", namespace: "shop", labels: labels.Set{"app": "etcd", "etcd_cluster": "db"}}
	other  = end{name: "other", namespace: "shop", labels: labels.Set{"app": "etcd", "etcd_cluster": "db"}}
	backup = end{name: "backup", namespace: "shop", labels: labels.Set{"app.kubernetes.io/name": "etcd-backup"}}
	seed   = end{name: "seed", namespace: "shop", labels: labels.Set{"app.kubernetes.io/name": "etcd-restore"}}
	server = end{name: "server", namespace: "shop", labels: labels.Set{"app": "memcached", "memcached_cr": "c"},
		ports: map[string]int32{"memcached": 11311, "metrics": 9150}}
	client   = end{name: "client", namespace: "shop"}
	stranger = end{name: "stranger", namespace: "street", labels: labels.Set{"control-plane": "controller-manager"}}
	operator = end{name: "operator", namespace: "etcd-operator-system", labels: labels.Set{"control-plane": "controller-manager"}}
	caches   = end{name: "operator", namespace: "memcached-operator-system", labels: labels.Set{"control-plane": "controller-manager"}}
	scraper  = end{name: "prometheus", namespace: "monitoring"}
	dns      = end{name: "dns", namespace: "kube-system", labels: labels.Set{"k8s-app": "kube-dns"}}
	outside  = end{name: "203.0.113.7"}
	node     = end{name: "node", isNode: true}
)

const tcp, udp = corev1.ProtocolTCP, corev1.ProtocolUDP

// needed are connections of which each thing in the policies of etcd and memcached is needed by one.
var needed = []connection{
	{operator, member, tcp, 2379},
	{member, other, tcp, 2380},
	{scraper, member, tcp, 2381},
	{member, dns, udp, 53},
	{member, dns, tcp, 53},
	{operator, seed, tcp, 2379},
	{backup, dns, udp, 53},
	{backup, dns, tcp, 53},
	{backup, member, tcp, 2379},
	{backup, outside, tcp, 443},
	{client, server, tcp, 11311},
	{caches, server, tcp, 11311},
	{scraper, server, tcp, 9150},
}

func TestAllows(t *testing.T) {
	policies := append(read(t, "shop", "etcd"), read(t, "shop", "memcached")...)
	for _, c := range append(slices.Clone(needed),
		connection{client, member, tcp, 2379},
		connection{client, stranger, tcp, 1234}, // no policy selects them
		connection{node, member, tcp, 2381},     // of the kubelet
		connection{seed, outside, tcp, 443},
	) {
		if !allows(policies, c) {
			t.Errorf("refused: %s", c)
		}
	}
	for _, c := range []connection{
		{stranger, member, tcp, 2379}, // the operator's label, in another namespace
		{operator, member, tcp, 2380},
		{client, member, tcp, 2380},
		{client, member, tcp, 2381},
		{scraper, member, tcp, 2379},
		{member, outside, tcp, 443},
		{member, dns, tcp, 80},
		{member, client, udp, 53},
		{member, node, tcp, 10250},
		{client, backup, tcp, 2379},
		{backup, member, tcp, 2380},
		{backup, outside, udp, 443},
		{client, server, tcp, 11211}, // what the port's name does not stand for
		{server, dns, udp, 53},
		{caches, member, tcp, 2379},
	} {
		if allows(policies, c) {
			t.Errorf("allowed: %s", c)
		}
	}
	if elsewhere := read(t, "street", "etcd"); !allows(elsewhere, connection{stranger, member, tcp, 2379}) {
		t.Error("a policy is in effect in another namespace")
	}
}

// TestCompareFindsPlanted: a rule that is missing refuses a connection, and one that no connection needs is found.
func TestCompareFindsPlanted(t *testing.T) {
	policies := append(read(t, "shop", "etcd"), read(t, "shop", "memcached")...)
	if refused, unneeded := compare(policies, needed); len(refused) > 0 || len(unneeded) > 0 {
		t.Fatalf("refused %v, not needed %q", refused, unneeded)
	}
	for _, less := range lessened(policies) {
		if refused, _ := compare(less.policies, needed); len(refused) != 1 {
			t.Errorf("without %s: refused %v", less.without, refused)
		}
	}
	for i, c := range needed {
		if _, unneeded := compare(policies, slices.Delete(slices.Clone(needed), i, i+1)); len(unneeded) == 0 {
			t.Errorf("without %s, everything is needed", c)
		}
	}
	policies[0].Spec.Egress = append(policies[0].Spec.Egress, networkingv1.NetworkPolicyEgressRule{})
	if _, unneeded := compare(policies, needed); !slices.Contains(unneeded, policies[0].Name+" Egress[2]") {
		t.Errorf("a rule that allows all: not needed are %q", unneeded)
	}
}
