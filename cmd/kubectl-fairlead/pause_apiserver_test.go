//go:build apiserver

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
)

func TestPause(t *testing.T) {
	r := newRig(t)
	at := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	at.Spec.Schedule, at.Spec.Command = "2040-01-02T08:00:00Z", new("date")
	r.stored(at, func() { at.Status.Phase = atv1alpha1.Pending })
	ran := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: "ran"}, Spec: at.Spec}
	r.stored(ran, func() { ran.Status.Phase = atv1alpha1.Running })
	r.stored(&etcdv1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db"}}, func() {})
	switching := &etcdv1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "switching"}}
	r.stored(switching, func() {
		switching.Status.Restoring = &etcdv1beta2.Restoring{ID: "1", Name: "back", Seed: "switching-x", Phase: etcdv1beta2.RestoreSwitching,
			Source: etcdv1beta2.RestoreSource{BackupStorageType: etcdv1beta2.StorageClaim, BackupSource: etcdv1beta2.BackupSource{
				PersistentVolumeClaim: &etcdv1beta2.ClaimSource{ClaimName: "backups", Path: "db"}}}}
	})
	backup := &etcdv1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	backup.Spec.EtcdCluster, backup.Spec.StorageType = "db", etcdv1beta2.StorageClaim
	backup.Spec.PersistentVolumeClaim = &etcdv1beta2.ClaimSource{ClaimName: "backups", Path: "db"}
	r.stored(backup, func() {})
	r.stored(&cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}, func() {})

	const all = "etcd/db etcdbackup/nightly at/hello"
	r.pause(0, all+" --dry-run=client", "etcd.database.coreos.com/db paused (dry run)\n", "")
	r.pause(0, all+" --dry-run=server", "at.at.example.com/hello paused (server dry run)\n", "")
	r.arePaused(false)
	r.pause(0, all, "etcdbackup.etcd.database.coreos.com/nightly paused\n", "It does not start until it is resumed.")
	r.arePaused(true)
	r.pause(0, all, "etcdcluster.etcd.database.coreos.com/db is paused already\n", "")
	r.resume(0, all, "at.at.example.com/hello resumed\n", "A backup that was due meanwhile is begun now.")
	r.arePaused(false)
	r.resume(0, all, "at.at.example.com/hello is not paused\n", "")

	r.pause(0, "etcd/switching", "database.coreos.com/switching paused", "it may serve nothing until it is resumed")

	// What cannot be paused keeps no other from it.
	r.pause(1, "memcached/cache etcd/db", "db paused\n", "memcached/cache: a Memcached cannot be paused: only ")
	r.pause(1, "at/ran", "", "at/ran is RUNNING: only an At that waits")
	r.pause(1, "at/none", "", `"none" not found`)
	r.pause(1, "db", "", "db: name an object as KIND/NAME")
	r.pause(1, "etcd/db --dry-run=maybe", "", "must be none, client or server")

	for begun, want := range map[string]string{"": "etcdcluster/\netcdbackup/\nat/\n:6\n", "at/": "at/ran\n:4\n"} {
		args := slices.Concat([]string{"kubectl-fairlead", "__complete", "pause"}, r.there(), []string{"at/hello", begun})
		if got := callAt(t, time.Now, "", args...); got.out != want {
			t.Errorf("completion of %q: %q, want %q", begun, got.out, want)
		}
	}
}

func (r *rig) pause(code int, args, out, errOut string) {
	r.Helper()
	r.verb("pause", code, args, out, errOut)
}

func (r *rig) resume(code int, args, out, errOut string) {
	r.Helper()
	r.verb("resume", code, args, out, errOut)
}

// verb is a call of `kubectl fairlead` that must end with this code, and print this.
func (r *rig) verb(verb string, code int, args, out, errOut string) {
	r.Helper()
	got := callAt(r.T, time.Now, "", slices.Concat([]string{"kubectl-fairlead", verb}, r.there(), strings.Fields(args))...)
	if got.code != code || !strings.Contains(got.out, out) || !strings.Contains(got.errOut, errOut) {
		r.Errorf("%s %s: %+v, want code %d, %q, %q", verb, args, got, code, out, errOut)
	}
}

func (r *rig) arePaused(want bool) {
	r.Helper()
	for name, object := range map[string]client.Object{
		"db": &etcdv1beta2.EtcdCluster{}, "nightly": &etcdv1beta2.EtcdBackup{}, "hello": &atv1alpha1.At{},
	} {
		if err := r.Get(r.Context(), client.ObjectKey{Namespace: r.namespace, Name: name}, object); err != nil {
			r.Fatal(err)
		}
		if isPaused(object) != want {
			r.Errorf("%s is paused: %t", name, !want)
		}
	}
}
