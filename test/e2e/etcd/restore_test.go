//go:build e2e

package etcd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestEtcdRestoreDamaged: a backup that is damaged, or is none, leaves the cluster as it was, and the
// EtcdRestore says what is wrong.
func TestEtcdRestoreDamaged(t *testing.T) {
	t.Parallel()
	needsLocalCluster(t)
	e := create(t, "size: 3")
	s := e.s3()
	e.put("/key", "kept")
	e.backUp("once", "etcdCluster: example", s.at("storageType", "whole"))
	e.backup("once", isMade)
	whole, err := os.ReadFile(filepath.Join(s.folder, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	turned := slices.Clone(whole)
	turned[len(turned)/2] ^= 1
	before := e.pods()
	for name, tt := range map[string]struct {
		content []byte
		reason  string
	}{
		"truncated": {whole[:len(whole)/2], "ObjectDamaged"},
		"turned":    {turned, "ObjectDamaged"},
		"foreign":   {[]byte(strings.Repeat("no snapshot ", 10000)), "ObjectForeign"},
	} {
		if err := os.WriteFile(filepath.Join(s.folder, name), tt.content, 0o644); err != nil {
			t.Fatal(err)
		}
		e.restore(name, "etcdCluster: {name: example}", s.at("backupStorageType", name))
		e.restoreIs(name, func(r *v1beta2.EtcdRestore) error {
			if r.Status.Phase != v1beta2.RestoreFailed || !strings.Contains(r.Status.Reason, tt.reason) {
				return fmt.Errorf("the restore says %+v, want Failed and %s", r.Status, tt.reason)
			}
			return nil
		})
	}
	// What is not there may come: it is waited for, until the EtcdRestore is deleted.
	e.restore("missing", "etcdCluster: {name: example}", s.at("backupStorageType", "missing"))
	e.restoreIs("missing", func(r *v1beta2.EtcdRestore) error {
		if said := fmt.Sprint(r.Status.Conditions); r.Status.Phase != v1beta2.RestoreVerifying || !strings.Contains(said, "ObjectNotFound") {
			return fmt.Errorf("the restore says %+v, want Verifying and ObjectNotFound", r.Status)
		}
		return nil
	})
	e.kubectl("delete", "etcdrestore", "missing")
	e.ready()
	for name, pod := range e.pods() {
		if before[name].UID != pod.UID || pod.Status.ContainerStatuses[0].RestartCount != before[name].Status.ContainerStatuses[0].RestartCount {
			t.Errorf("pod %s is not as it was", name)
		}
	}
	e.wantValue("/key", "kept")
}

// TestEtcdRestoreOperatorKilled: a restore goes on where it was, whenever the operator dies.
// It is not parallel: while there is no operator, the status of all other clusters says what was.
func TestEtcdRestoreOperatorKilled(t *testing.T) {
	needsLocalCluster(t)
	e := create(t, "size: 3", volumes)
	s := e.s3()
	e.put("/key", "backed up")
	e.backUp("once", "etcdCluster: example", s.at("storageType", "once"))
	e.backup("once", isMade)
	e.put("/key", "written later")
	e.restore("example", "etcdCluster: {name: example}", s.at("backupStorageType", "once"), "keepOld: true")
	kills := 0
	e.restoreIs("example", func(r *v1beta2.EtcdRestore) error {
		if r.Status.Succeeded {
			return nil
		}
		if kills < 6 {
			e2e.Kubectl(t, "delete", "pod", "-n", "etcd-operator-system", "-l", "control-plane=controller-manager", "--force", "--grace-period=0")
			kills++
			time.Sleep(time.Duration(kills) * time.Second)
		}
		return fmt.Errorf("not restored: %+v", r.Status)
	})
	t.Logf("restored, with %d kills of the operator", kills)
	e.ready()
	e.wantValue("/key", "backed up")
	r := e.restored("example")
	if len(r.Status.KeptPersistentVolumeClaims) != 3 {
		t.Errorf("kept are %v, want the volumes of three members", r.Status.KeptPersistentVolumeClaims)
	}
	for _, name := range r.Status.KeptPersistentVolumeClaims {
		e.kubectl("get", "pvc", name)
	}
}

// TestEtcdRestoreNew: a cluster that is created together with its EtcdRestore begins with the backup:
// here with the newest one at or before a revision, of those that a periodic EtcdBackup has made.
func TestEtcdRestoreNew(t *testing.T) {
	t.Parallel()
	needsLocalCluster(t)
	e := create(t, "size: 1")
	s := e.s3()
	e.put("/key", "first")
	e.backUp("prod", "etcdCluster: example", s.at("storageType", "prod"), "backupPolicy: {backupIntervalInSecond: 2}")
	first := e.backup("prod", isMade).Status.EtcdRevision
	e.put("/key", "second")
	e.backup("prod", func(b *v1beta2.EtcdBackup) error {
		if b.Status.EtcdRevision <= first {
			return fmt.Errorf("the newest backup is of revision %d", b.Status.EtcdRevision)
		}
		return nil
	})
	e.kubectl("delete", "etcdbackup", "prod")
	e.kubectl("delete", "etcd", "example")
	pace.Eventually(t, time.Minute, func() error {
		if n := len(e.pods()); n > 0 {
			return fmt.Errorf("there are %d pods", n)
		}
		return nil
	})
	e.restore("example", "etcdCluster: {name: example}", s.at("backupStorageType", "prod"), fmt.Sprintf("revision: %d", first))
	e.restoreIs("example", func(r *v1beta2.EtcdRestore) error {
		if r.Status.Phase != v1beta2.RestoreWaiting {
			return fmt.Errorf("without a cluster the restore is %+v", r.Status)
		}
		return nil
	})
	e.apply("size: 3")
	e.restored("example")
	e.ready()
	e.wantValue("/key", "first")
}
