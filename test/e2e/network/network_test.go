//go:build e2e

package network

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"example.com/fairlead/test/e2e"
)

func TestMain(m *testing.M) { os.Exit(e2e.Run(m)) }

var operators = []string{"at", "etcd", "memcached", "webserver"}

// elsewhere are ports that policies have for clusters that are not as this one.
var elsewhere = map[string]string{
	" port TCP/443": "where the API server has it; here it has 6443",
	" port TCP/53":  "for answers of DNS that are too large for UDP",
}

// TestNetworkPolicies has an object of each kind go through its life, and compares the policies with what connects meanwhile.
// Other tests go on beside it: what managers connect to for these is compared as well.
func TestNetworkPolicies(t *testing.T) {
	e2e.NeedsLocalCluster(t, "it looks into the network of the node")
	r := record(t)
	namespace := e2e.NewNamespace(t)
	applyPolicies(t, namespace)
	t.Run("walk", func(t *testing.T) {
		for _, w := range []struct {
			name string
			walk func(*testing.T, string)
		}{ // the longest first
			{"etcd", walkEtcd}, {"memcached", walkMemcached}, {"webserver", walkWebServer}, {"at", walkAt}, {"managers", walkManagers},
		} {
			t.Run(w.name, func(t *testing.T) { t.Parallel(); w.walk(t, namespace) })
		}
	})
	policies := policiesOf(t, namespace)
	seen := slices.DeleteFunc(r.connections(), func(c connection) bool {
		return !isSelected(policies, c.from) && !isSelected(policies, c.to)
	})
	refused, unneeded := compare(policies, seen)
	for _, c := range refused {
		t.Errorf("the policies do not allow %s", c)
	}
	rest := maps.Clone(elsewhere)
	for _, part := range unneeded {
		port := part[strings.Index(part, "]")+1:]
		if _, is := elsewhere[port]; !is {
			t.Errorf("no connection needs %s", part)
		}
		delete(rest, port)
	}
	if len(rest) > 0 {
		t.Errorf("these are used everywhere: %v", rest)
	}
	t.Logf("compared %d policies with %d connections", len(policies), len(seen))
	if t.Failed() {
		for _, c := range seen {
			t.Log(c)
		}
	}
}

func isSelected(policies []networkingv1.NetworkPolicy, e end) bool {
	return slices.ContainsFunc(policies, func(p networkingv1.NetworkPolicy) bool {
		return p.Namespace == e.namespace && selects(&p.Spec.PodSelector, e.labels)
	})
}

// folder has the policies of an operator.
func folder(operator string) string {
	return filepath.Join(e2e.Root, "operators", operator, "config", "network")
}

func applyPolicies(t *testing.T, namespace string) {
	t.Helper()
	for _, operator := range operators {
		e2e.Kubectl(t, "apply", "-k", folder(operator))
		t.Cleanup(func() { e2e.Kubectl(t, "delete", "-k", folder(operator)) })
		e2e.Kubectl(t, "apply", "-n", namespace, "-f", filepath.Join(folder(operator), "workloads.yaml"))
	}
	e2e.Kubectl(t, "create", "namespace", monitoring)
	t.Cleanup(func() { e2e.Kubectl(t, "delete", "namespace", monitoring, "--wait=false") })
}

// policiesOf are the policies as the API server has them.
func policiesOf(t *testing.T, namespace string) []networkingv1.NetworkPolicy {
	t.Helper()
	var list networkingv1.NetworkPolicyList
	if err := json.Unmarshal([]byte(e2e.Kubectl(t, "get", "networkpolicies", "--all-namespaces", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list.Items, func(p networkingv1.NetworkPolicy) bool {
		return p.Namespace != namespace && !slices.Contains(operators, strings.TrimSuffix(p.Namespace, "-operator-system"))
	})
}
