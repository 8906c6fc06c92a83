//go:build e2e

package etcd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"example.com/fairlead/test/e2e"
)

// TestKubectlFairleadEtcd goes through what docs/kubectl.md has for EtcdClusters.
func TestKubectlFairleadEtcd(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", volumes)
	do := func(want string, args ...string) string {
		return e2e.Fairlead(t, e.namespace, want, append([]string{"etcd"}, args...)...)
	}
	refuses := func(want string, args ...string) {
		e2e.FairleadRefuses(t, e.namespace, want, append([]string{"etcd"}, args...)...)
	}
	e.claim()
	e.put("/key", "before")

	do(" from ", "defrag", "example")
	leader := func() string { return e.kubectl("get", "etcd", "example", "-o", "jsonpath={.status.leader}") }
	was := leader()
	other := slices.DeleteFunc(e.members(), func(name string) bool { return name == was })[0]
	do(other+" leads now, before it was "+was, "move-leader", "example", "--to", other)
	do(other+" leads already", "move-leader", "example", "--to", other)
	do(" leads now, before it was "+other, "move-leader", "example")
	refuses("has no member \"example-none\"", "move-leader", "example", "--to", "example-none")

	// A snapshot is what etcd's own tool reads.
	file := filepath.Join(t.TempDir(), "example.db")
	do(", as etcd has it", "snapshot", "example", file)
	refuses("exists: name another file", "snapshot", "example", file)
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || len(left) > 0 {
		t.Errorf("it has left %v (%v)", left, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the snapshot is %v (%v)", info, err)
	}
	refuses("exists", "snapshot", "example", filepath.Dir(file))

	do("Saved revision ", "backup", "example", "--name=now", "--to", "pvc://backups/now.db", "--verify=Restore", "--wait")
	e.put("/key", "after")
	refuses("What was written since is lost.", "restore", "now", "--into", "example", "--wait")
	e.wantValue("/key", "after")
	do("Restored revision ", "restore", "now", "--into", "example", "--name=back", "--wait", "--yes")
	e.ready()
	e.wantValue("/key", "before")

	gone := e.members()[0]
	refuses("add --yes", "replace", "example", gone)
	do(gone+" was replaced by example-", "replace", "example", gone, "--yes", "--wait")
	if slices.Contains(e.members(), gone) {
		t.Errorf("member %s is still there", gone)
	}
	e.wantValue("/key", "before")
	e.kubectl("scale", "etcd/example", "--replicas=1")
	e.ready()
	refuses("would lose its quorum", "replace", "example", e.members()[0], "--yes")
}

// TestKubectlFairleadEtcdTLS reaches members with the certificate that is in the Secret.
func TestKubectlFairleadEtcdTLS(t *testing.T) {
	t.Parallel()
	e := create(t, "size: 3", "TLS: {generated: {}}")
	out := e2e.Fairlead(t, e.namespace, ", the leader: from ", "etcd", "defrag", "example")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 3 || !strings.Contains(lines[2], ", the leader: from ") {
		t.Errorf("the leader is not the last of three:\n%s", out)
	}
	e2e.Fairlead(t, e.namespace, " (dry run)", "etcd", "move-leader", "example", "--dry-run=client")
	e2e.Fairlead(t, e.namespace, " leads now", "etcd", "move-leader", "example")
	e2e.Fairlead(t, e.namespace, ", as etcd has it", "etcd", "snapshot", "example", filepath.Join(t.TempDir(), "example.db"))
}
