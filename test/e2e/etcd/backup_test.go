//go:build e2e

package etcd

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// backUp applies an EtcdBackup of the cluster.
func (e etcd) backUp(name string, spec ...string) {
	e.t.Helper()
	e2e.Apply(e.t, e.namespace, "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdBackup\nmetadata: {name: "+name+"}\nspec:\n  "+strings.Join(spec, "\n  ")+"\n")
}

// restore applies an EtcdRestore.
func (e etcd) restore(name string, spec ...string) {
	e.t.Helper()
	e2e.Apply(e.t, e.namespace, "apiVersion: etcd.database.coreos.com/v1beta2\nkind: EtcdRestore\nmetadata: {name: "+name+"}\nspec:\n  "+strings.Join(spec, "\n  ")+"\n")
}

// backup waits until an EtcdBackup is as it is wanted.
func (e etcd) backup(name string, is func(*v1beta2.EtcdBackup) error) *v1beta2.EtcdBackup {
	e.t.Helper()
	var b v1beta2.EtcdBackup
	pace.Eventually(e.t, 3*time.Minute, func() error {
		if err := cluster.Get(context.Background(), client.ObjectKey{Namespace: e.namespace, Name: name}, &b); err != nil {
			return err
		}
		return is(&b)
	})
	return &b
}

func isMade(b *v1beta2.EtcdBackup) error {
	if !b.Status.Succeeded || b.Status.LastBackup == nil {
		return fmt.Errorf("no backup was made: %+v", b.Status)
	}
	return nil
}

func isProved(b *v1beta2.EtcdBackup) error {
	if err := isMade(b); err != nil {
		return err
	}
	if b.Status.LastProof == nil || b.Status.LastProof.Key != b.Status.LastBackup.Key {
		return fmt.Errorf("the backup was not proved: %+v", b.Status)
	}
	return nil
}

// restored waits until an EtcdRestore is complete.
func (e etcd) restored(name string) *v1beta2.EtcdRestore {
	e.t.Helper()
	return e.restoreIs(name, func(r *v1beta2.EtcdRestore) error {
		if r.Status.Phase == v1beta2.RestoreFailed {
			e.t.Fatalf("the restore failed: %+v", r.Status)
		}
		if !r.Status.Succeeded {
			return fmt.Errorf("not restored: %+v", r.Status)
		}
		return nil
	})
}

func (e etcd) restoreIs(name string, is func(*v1beta2.EtcdRestore) error) *v1beta2.EtcdRestore {
	e.t.Helper()
	var r v1beta2.EtcdRestore
	pace.Eventually(e.t, 3*time.Minute, func() error {
		if err := cluster.Get(context.Background(), client.ObjectKey{Namespace: e.namespace, Name: name}, &r); err != nil {
			return err
		}
		return is(&r)
	})
	return &r
}

// TestEtcdBackupStorages: a key that was backed up and then deleted comes back, from each sort of
// storage, with and without TLS and volumes, and with each minor version of etcd.
func TestEtcdBackupStorages(t *testing.T) {
	t.Parallel()
	needsLocalCluster(t)
	for name, tt := range map[string]struct {
		storage func(etcd) storage
		spec    []string
	}{
		"S3 with TLS and volumes": {etcd.s3, []string{"version: " + current, "TLS: {generated: {}}", volumes}},
		"GCS":                     {etcd.gcs, []string{"version: " + patch}},
		"ABS":                     {etcd.abs, []string{"version: " + newer}},
		"a claim with volumes":    {etcd.claim, []string{"version: " + older, volumes}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := create(t, append(tt.spec, "size: 3")...)
			s := tt.storage(e)
			put := e.put
			if strings.Contains(name, "TLS") {
				put = e.putSecurely
			}
			put("/key", "backed up")
			began := time.Now()
			e.backUp("once", "etcdCluster: example", s.at("storageType", "once.backup"), "verify: Restore")
			b := e.backup("once", isProved)
			t.Logf("backed up and proved after %.1f s: %d bytes in %s, proof %s", time.Since(began).Seconds(),
				b.Status.LastBackup.Size, b.Status.LastBackup.Duration.Duration, b.Status.LastProof.Duration.Duration)
			put("/key", "written later")
			before, err := e.get()
			if err != nil {
				t.Fatal(err)
			}
			began = time.Now()
			e.restore("example", "etcdCluster: {name: example}", s.at("backupStorageType", "once.backup"))
			r := e.restored("example")
			e.ready()
			t.Logf("restored and whole after %.1f s, revision %d of %d", time.Since(began).Seconds(), r.Status.Revision, r.Status.LostRevision)
			after, err := e.get()
			if err != nil {
				t.Fatal(err)
			}
			if after.Status.ClusterID == before.Status.ClusterID || after.Status.ClusterID != r.Status.ClusterID {
				t.Errorf("the cluster's ID was %s and is %s; the restore says %s", before.Status.ClusterID, after.Status.ClusterID, r.Status.ClusterID)
			}
			e.wantMemberValue("/key", "backed up")
			put("/key", "written after")
		})
	}
}

// wantMemberValue reads a key as a member does, with its own certificate if it has one.
func (e etcd) wantMemberValue(key, want string) {
	e.t.Helper()
	pace.Eventually(e.t, time.Minute, func() error {
		out, err := e.asMember("get", key, "--print-value-only")
		if err != nil {
			return err
		}
		if got := strings.TrimSpace(out); got != want {
			return fmt.Errorf("%s is %q, want %q", key, got, want)
		}
		return nil
	})
}

// TestEtcdBackupRetention: across revisions 9 to 10 and 99 to 100 the newest are kept, and files that
// the EtcdBackup has not written are left alone, whatever they are called.
func TestEtcdBackupRetention(t *testing.T) {
	t.Parallel()
	needsLocalCluster(t)
	e := create(t, "size: 1")
	s := e.s3()
	foreign := []string{"prod_v1_2020-01-02-15:04:05", "prod_v5000_2030-01-02-15:04:05", "prod", "production_v2_2020-01-02-15:04:05"}
	for _, name := range foreign {
		if err := os.WriteFile(filepath.Join(s.folder, name), []byte("somebody else's"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e.backUp("prod", "etcdCluster: example", s.at("storageType", "prod"), "backupPolicy: {backupIntervalInSecond: 2, maxBackups: 3}")
	key := regexp.MustCompile(`^prod_v(\d+)_\d{4}-\d{2}-\d{2}-\d{2}:\d{2}:\d{2}$`)
	revisions := func() []int {
		entries, err := os.ReadDir(s.folder)
		if err != nil {
			t.Fatal(err)
		}
		var all []int
		for _, entry := range entries {
			if m := key.FindStringSubmatch(entry.Name()); m != nil && !slices.Contains(foreign, entry.Name()) {
				n, err := strconv.Atoi(m[1])
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, n)
			}
		}
		slices.Sort(all)
		return all
	}
	for revision := 1; revision < 102; {
		if revision < 8 || revision > 11 && revision < 98 {
			e.put("/key", strconv.Itoa(revision)) // on to where it matters
			revision++
			continue
		}
		b := e.backup("prod", func(b *v1beta2.EtcdBackup) error {
			if b.Status.EtcdRevision < int64(revision) {
				return fmt.Errorf("there is no backup of revision %d: %+v", revision, b.Status)
			}
			return nil
		})
		e.put("/key", strconv.Itoa(revision))
		revision = int(b.Status.EtcdRevision) + 1
	}
	pace.Eventually(t, time.Minute, func() error {
		if all := revisions(); len(all) != 3 || slices.Min(all) < 99 {
			return fmt.Errorf("there are backups of %v, want the last three", all)
		}
		return nil
	})
	for _, name := range foreign {
		if _, err := os.Stat(filepath.Join(s.folder, name)); err != nil {
			t.Errorf("%s was touched: %v", name, err)
		}
	}
}
