//go:build e2e

package etcd

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdNightWalkthrough follows "Your night when it went wrong" of the guide word for word, after the data of
// all members is lost.
func TestEtcdNightWalkthrough(t *testing.T) {
	e := create(t, "size: 3", volumes)
	s := e.claim()
	e.put("/key", "backed up")
	e.backUp("nightly", "etcdCluster: example", s.at("storageType", "nightly"), "verify: Restore", "backupPolicy: {schedule: \"* * * * *\"}")
	e.backup("nightly", isProved)
	lost := e.members()
	e.kubectl(append([]string{"delete", "pvc", "--wait=false"}, lost...)...)
	e.kubectl(append([]string{"delete", "pod", "--force", "--grace-period=0"}, lost...)...)
	pace.Eventually(t, 2*time.Minute, func() error {
		ec, err := e.get()
		if err != nil {
			return err
		}
		if ec.Status.QuorumLoss == nil {
			return fmt.Errorf("no loss is reported: %s", status(ec))
		}
		return nil
	})
	config := e.kubeconfig()
	for _, commands := range night(t) {
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", commands)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+config)
		out, err := cmd.CombinedOutput()
		t.Logf("%s\n%s", commands, out)
		if err != nil {
			t.Fatal(err)
		}
	}
	e.wantValue("/key", "backed up")
	if r := e.restored("at-night"); r.Status.LostRevision < r.Status.Revision {
		t.Errorf("revision %d is reported lost, and %d was restored", r.Status.LostRevision, r.Status.Revision)
	}
	e.put("/key", "written after")
}

// night are the commands of the guide's section.
func night(t *testing.T) []string {
	t.Helper()
	guide, err := os.ReadFile(filepath.Join(e2e.Root, "docs", "etcd-backup.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## Your night when it went wrong\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var all []string
	for {
		_, after, found := strings.Cut(section, "```bash\n")
		if !found {
			break
		}
		commands, rest, _ := strings.Cut(after, "```")
		all, section = append(all, commands), rest
	}
	if len(all) < 5 {
		t.Fatalf("the section has %d blocks of commands", len(all))
	}
	return all
}

// kubeconfig is the cluster's, with the test's namespace as the default.
func (e etcd) kubeconfig() string {
	e.t.Helper()
	config, err := e2e.TryKubectl("", "config", "view", "--raw", "--flatten", "--minify")
	if err != nil {
		e.t.Fatal(err)
	}
	file := filepath.Join(e.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		e.t.Fatal(err)
	}
	e2e.Kubectl(e.t, "--kubeconfig", file, "config", "set-context", "--current", "--namespace="+e.namespace)
	return file
}
