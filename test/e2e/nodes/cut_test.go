//go:build e2e

package nodes

import (
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/internal/testkit/stall"
	"example.com/fairlead/test/e2e"
)

const (
	// cutFor is for how long the leader is cut off.
	cutFor = time.Minute
	// healedWithin is how soon all is as requested afterwards.
	healedWithin = time.Minute
)

// TestLeaderCut cuts the leader off from the other members and from the operator, and from neither clients nor kubelets.
func TestLeaderCut(t *testing.T) {
	nodes := threeNodes(t)
	managerTo(t, nodes)
	namespace := e2e.NewNamespace(t)
	e2e.Apply(t, namespace, objects)
	ready(t, namespace)
	manager := "fairlead-system/" + e2e.Kubectl(t, "get", "pods", "-n", "fairlead-system", "-o", "jsonpath={.items[0].metadata.name}")
	defer localcluster(t, "heal") // if a cut is left
	for _, direction := range []struct {
		name string
		cut  func(leader, other string)
	}{
		{"both", func(leader, other string) { localcluster(t, "cut", leader, other) }},
		{"what it sends", func(leader, other string) { localcluster(t, "cut", "--one-way", leader, other) }},
		{"what it is sent", func(leader, other string) { localcluster(t, "cut", "--one-way", other, leader) }},
	} {
		stall.Judge(t, direction.name, func(t testing.TB) {
			leader := e2e.Kubectl(t, "get", "etcd/db", "-n", namespace, "-o", "jsonpath={.status.leader}")
			from := []string{manager}
			for pod := range strings.FieldsSeq(e2e.Kubectl(t, "get", "pods", "-n", namespace, "-l", "etcd_cluster=db", "-o", "jsonpath={.items[*].metadata.name}")) {
				if pod != leader {
					from = append(from, namespace+"/"+pod)
				}
			}
			before := members(t, namespace)
			writes := write(t, namespace)
			time.Sleep(5 * time.Second) // undisturbed
			began := time.Now()
			for _, other := range from {
				direction.cut(namespace+"/"+leader, other)
			}
			outlives(t, namespace, leader, began)
			ended := time.Now()
			report := checked(t, writes)
			gap := report.Gap(began, ended)
			t.Logf("%s: longest gap of writes: %v", direction.name, gap.Round(time.Millisecond))
			if limit := pace.Scale(servesWithin); gap > limit {
				t.Errorf("%s: no write was acknowledged for %v, want at most %v", direction.name, gap, limit)
			}
			if after := members(t, namespace); after != before {
				t.Errorf("%s: members were replaced: they were\n%s\nand are\n%s", direction.name, before, after)
			}
		}, nil)
	}
}

// outlives waits until the cut is to end, and then until all members serve.
func outlives(t testing.TB, namespace, leader string, began time.Time) {
	t.Helper()
	time.Sleep(cutFor - time.Since(began))
	said := e2e.Kubectl(t, "get", "etcd/db", "-n", namespace, "-o", `jsonpath={.status.memberList[?(@.name=="`+leader+`")].problem}`)
	t.Logf("of %s it is said: %s", leader, said)
	if said == "" {
		t.Errorf("nothing is said of %s", leader)
	}
	healed := time.Now()
	localcluster(t, "heal")
	pace.Eventually(t, healedWithin, func() error {
		_, err := e2e.TryKubectl("", "wait", "-n", namespace, "--timeout=1s", "--for=jsonpath={.status.members.ready[2]}", "etcd/db")
		return err
	})
	t.Logf("all serve %v after the cut was healed", time.Since(healed).Round(time.Second))
}
