//go:build e2e

package etcd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdNightWalkthrough follows the pages on disaster recovery word for word, with the plugin and without it, after
// the data of all members is lost. It is not parallel, because it changes PATH; its two parts are.
func TestEtcdNightWalkthrough(t *testing.T) {
	e2e.InstallPlugin(t)
	for _, guide := range []struct {
		page, section string
		blocks        int
	}{{"disaster-recovery.md", "", 2}, {"etcd-backup.md", "Restore without the plugin", 5}} {
		t.Run(strings.TrimSuffix(guide.page, ".md"), func(t *testing.T) {
			t.Parallel()
			restoresByGuide(t, e2e.GuideCommands(t, guide.page, guide.section, guide.blocks))
		})
	}
}

func restoresByGuide(t *testing.T, blocks []string) {
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
	for _, commands := range blocks {
		e2e.RunGuide(t, e.namespace, commands)
	}
	e.wantValue("/key", "backed up")
	if r := e.restored("at-night"); r.Status.LostRevision < r.Status.Revision {
		t.Errorf("revision %d is reported lost, and %d was restored", r.Status.LostRevision, r.Status.Revision)
	}
	e.put("/key", "written after")
}
