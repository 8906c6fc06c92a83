//go:build e2e

package etcd

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdWalkthrough is what the CoreOS operator's guide does.
func TestEtcdWalkthrough(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", "version: "+current)
	rows := e2e.Rows(e.kubectl("get", "pod"))
	for _, row := range rows {
		if !regexp.MustCompile(`^example-[a-z0-9]{5}$`).MatchString(row[0]) || row[2] != "Running" {
			t.Errorf("kubectl get pod shows %v", row)
		}
	}
	if len(rows) != 3 {
		t.Errorf("there are %d pods, want 3", len(rows))
	}
	e.put("/my-key", "my-value")
	e.wantValue("/my-key", "my-value")
	out, err := e.etcdctl("--endpoints=http://example-client:2379", "get", "/my-key", "--print-value-only")
	if err != nil || strings.TrimSpace(out) != "my-value" {
		t.Errorf("through the Service the value is %q (%v)", out, err)
	}
	header := strings.Join(strings.Fields(strings.Split(e.kubectl("get", "etcd"), "\n")[0]), " ")
	if header != "NAME SIZE READY VERSION STATUS AGE" {
		t.Errorf("columns of kubectl get etcd: %s", header)
	}
	e.kubectl("scale", "etcd/example", "--replicas=5")
	e.ready()
	e.kubectl("scale", "etcd/example", "--replicas=1")
	e.ready()
	e.wantValue("/my-key", "my-value")
	pace.Eventually(t, time.Minute, func() error {
		if rows := e2e.Rows(e.kubectl("get", "pod")); len(rows) != 1 {
			return fmt.Errorf("after scaling to 1 there are %v", rows)
		}
		return nil
	})
	e.kubectl("scale", "etcd/example", "--replicas=2")
	e.ready()
	e.wantValue("/my-key", "my-value")
	events := e.kubectl("get", "events", "--field-selector=involvedObject.name=example", "-o", "jsonpath={.items[*].reason}")
	for _, reason := range []string{"New Member Added", "Member Removed"} {
		if !strings.Contains(events, reason) {
			t.Errorf("there is no event %q: %s", reason, events)
		}
	}
	e2e.CheckMetrics(t, "etcd", "EtcdCluster, EtcdBackup and EtcdRestore", "fairlead_etcd_backup_failures") // there is no backup
}
