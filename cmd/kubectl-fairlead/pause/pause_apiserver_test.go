//go:build apiserver

package pause

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	cachev1alpha1 "example.com/fairlead/api/cache/v1alpha1"
	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// namespace is a new one, and `kubectl fairlead pause` and resume in it.
type namespace struct{ *rig.Rig }

func TestPause(t *testing.T) {
	r := namespace{rig.New(t, rig.Below(Command, ResumeCommand))}
	at := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: "hello"}}
	at.Spec.Schedule, at.Spec.Command = "2040-01-02T08:00:00Z", new("date")
	r.Stored(at, func() { at.Status.Phase = atv1alpha1.Pending })
	ran := &atv1alpha1.At{ObjectMeta: metav1.ObjectMeta{Name: "ran"}, Spec: at.Spec}
	r.Stored(ran, func() { ran.Status.Phase = atv1alpha1.Running })
	r.Stored(&etcdv1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db"}}, func() {})
	switching := &etcdv1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "switching"}}
	r.Stored(switching, func() {
		switching.Status.Restoring = &etcdv1beta2.Restoring{ID: "1", Name: "back", Seed: "switching-x", Phase: etcdv1beta2.RestoreSwitching,
			Source: etcdv1beta2.RestoreSource{BackupStorageType: etcdv1beta2.StorageClaim, BackupSource: etcdv1beta2.BackupSource{
				PersistentVolumeClaim: &etcdv1beta2.ClaimSource{ClaimName: "backups", Path: "db"}}}}
	})
	backup := &etcdv1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	backup.Spec.EtcdCluster, backup.Spec.StorageType = "db", etcdv1beta2.StorageClaim
	backup.Spec.PersistentVolumeClaim = &etcdv1beta2.ClaimSource{ClaimName: "backups", Path: "db"}
	r.Stored(backup, func() {})
	r.Stored(&cachev1alpha1.Memcached{ObjectMeta: metav1.ObjectMeta{Name: "cache"}}, func() {})

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
		if got := r.Call("__complete", "pause", "at/hello", begun); got.Out != want {
			t.Errorf("completion of %q: %q, want %q", begun, got.Out, want)
		}
	}
}

func (r namespace) pause(code int, args, out, errOut string) {
	r.Helper()
	r.verb("pause", code, args, out, errOut)
}

func (r namespace) resume(code int, args, out, errOut string) {
	r.Helper()
	r.verb("resume", code, args, out, errOut)
}

// verb is a call of `kubectl fairlead` that must end with this code, and print this.
func (r namespace) verb(verb string, code int, args, out, errOut string) {
	r.Helper()
	got := r.Call(append([]string{verb}, strings.Fields(args)...)...)
	if got.Code != code || !strings.Contains(got.Out, out) || !strings.Contains(got.ErrOut, errOut) {
		r.Errorf("%s %s: %+v, want code %d, %q, %q", verb, args, got, code, out, errOut)
	}
}

func (r namespace) arePaused(want bool) {
	r.Helper()
	for name, object := range map[string]client.Object{
		"db": &etcdv1beta2.EtcdCluster{}, "nightly": &etcdv1beta2.EtcdBackup{}, "hello": &atv1alpha1.At{},
	} {
		if err := r.Get(r.Context(), client.ObjectKey{Namespace: r.Namespace, Name: name}, object); err != nil {
			r.Fatal(err)
		}
		if isPaused(object) != want {
			r.Errorf("%s is paused: %t", name, !want)
		}
	}
}
