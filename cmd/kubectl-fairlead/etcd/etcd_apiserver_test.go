//go:build apiserver

package etcd

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	etcdv1beta2 "example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/cmd/kubectl-fairlead/cli"
	"example.com/fairlead/cmd/kubectl-fairlead/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// namespace is a new one, and `kubectl fairlead etcd` in it.
type namespace struct{ *rig.Rig }

func newRig(t *testing.T) namespace { return namespace{rig.New(t, rig.Below(Command))} }

// nightly is an EtcdBackup that has made a backup.
func (r namespace) nightly() *etcdv1beta2.EtcdBackup {
	r.Helper()
	b := &etcdv1beta2.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	b.Spec.EtcdCluster, b.Spec.StorageType, b.Spec.Verify = "db", etcdv1beta2.StorageS3, etcdv1beta2.VerifyRestore
	b.Spec.S3 = &etcdv1beta2.S3Source{Path: "bucket/db", AWSSecret: "aws"}
	b.Spec.BackupPolicy = &etcdv1beta2.BackupPolicy{Schedule: "30 2 * * *", TimeoutInSecond: 90}
	b.Spec.Pod = &etcdv1beta2.JobPod{ServiceAccountName: "saver"}
	r.Stored(b, func() {})
	return b
}

func (r namespace) cluster() *etcdv1beta2.EtcdCluster {
	r.Helper()
	ec := &etcdv1beta2.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: etcdv1beta2.EtcdClusterSpec{Size: 3}}
	r.Stored(ec, func() {})
	return ec
}

// TestNoForward: who may not reach members is told so, and not that the cluster is not healthy.
func TestNoForward(t *testing.T) {
	r := newRig(t)
	ec := r.cluster()
	ec.Status.MemberList = []etcdv1beta2.MemberStatus{{Name: "db-a", ID: "1"}}
	if err := r.Status().Update(r.Context(), ec); err != nil {
		t.Fatal(err)
	}
	server := r.Between("/portforward$", func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.HasSuffix(q.URL.Path, "/selfsubjectaccessreviews") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "status": {"allowed": false}}`)
		return true
	})
	got := r.Through(server, "etcd", "defrag", "db")
	if want := "error: you have no permission to create pods/portforward in namespace " + r.Namespace + "\n"; got.Code != 1 || got.ErrOut != want {
		t.Errorf("%+v, want %q", got, want)
	}
}

// TestDryReplace: a dry run deletes neither the pod nor the claim of a member.
func TestDryReplace(t *testing.T) {
	r := newRig(t)
	ec := r.cluster()
	core, err := corev1client.NewForConfig(r.Server.Config)
	if err != nil {
		t.Fatal(err)
	}
	e := &cluster{EtcdCluster: ec, pods: &cli.Pods{Core: core}}
	owned := metav1.ObjectMeta{Namespace: r.Namespace, Name: "db-a", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(ec, etcdv1beta2.GroupVersion.WithKind("EtcdCluster"))}}
	pod := &corev1.Pod{ObjectMeta: owned, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "etcd", Image: "etcd"}}}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: owned}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if err := errors.Join(r.Create(t.Context(), pod), r.Create(t.Context(), claim)); err != nil {
		t.Fatal(err)
	}
	data, err := dataOf(t.Context(), e, "db-a")
	if err == nil {
		err = data.delete(t.Context(), e, []string{metav1.DryRunAll})
	}
	if again, gone := dataOf(t.Context(), e, "db-a"); err != nil || gone != nil || again != data {
		t.Errorf("after a dry run there is %v: %v, %v", again, err, gone)
	}
	err = data.delete(t.Context(), e, nil)
	if again, gone := dataOf(t.Context(), e, "db-a"); err != nil || gone == nil && again.podUID != "" {
		t.Errorf("after it there is %v: %v", again, err)
	}
	r.Wants(1, []string{"must be none, client or server"}, "etcd", "defrag", "db", "--dry-run=some")
	r.Wants(1, []string{"must be none, client or server"}, "etcd", "move-leader", "db", "--dry-run=some")
	r.Wants(1, []string{"so there is nothing to wait for"}, "etcd", "replace", "db", "db-a", "--dry-run=server", "--wait")
}

func TestEtcdBackup(t *testing.T) {
	r := newRig(t)
	r.Wants(1, []string{`etcdclusters.etcd.database.coreos.com "db" not found`}, "etcd", "backup", "db", "--to=pvc://c/p")
	r.cluster()
	r.nightly()
	r.Wants(1, []string{"at least one of the flags in the group [like to] is required"}, "etcd", "backup", "db")
	r.Wants(1, []string{`etcdbackups.etcd.database.coreos.com "none" not found`}, "etcd", "backup", "db", "--like=none")
	for to, why := range map[string]string{
		"bucket/key":    "it has not a storage, a bucket or claim, and a path: write s3://BUCKET/KEY",
		"s3://bucket":   "it has not a storage, a bucket or claim, and a path: write s3://BUCKET/KEY",
		"ftp://a/b":     `there is no storage "ftp"`,
		"abs://a/b":     "--secret is missing",
		"pvc://a/../b":  "must be a path without",
		"pvc://a/b/../": "should match",
	} {
		r.Wants(1, []string{why}, "etcd", "backup", "db", "--to="+to)
	}
	r.Wants(1, []string{"has no --secret"}, "etcd", "backup", "db", "--to=pvc://a/b", "--secret=x")
	r.Wants(1, []string{"it is no URL"}, "etcd", "backup", "db", "--to=s3://a/b", "--endpoint=minio")
	r.Wants(1, []string{"nothing to wait for"}, "etcd", "backup", "db", "--like=nightly", "--wait", "--dry-run=server")
	r.Wants(1, []string{"Unsupported value"}, "etcd", "backup", "db", "--like=nightly", "--verify=Hope")
	r.Wants(0, []string{"x created (dry run)"}, "etcd", "backup", "db", "--like=nightly", "--name=x", "--dry-run=client")
	r.Wants(0, []string{"x created (server dry run)"}, "etcd", "backup", "db", "--like=nightly", "--name=x", "--dry-run=server")

	r.Wants(0, []string{"etcdbackup.etcd.database.coreos.com/x created\n", "to S3 bucket/db-x.\n"}, "etcd", "backup", "db", "--like=nightly", "--name=x")
	var b etcdv1beta2.EtcdBackup
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: r.Namespace, Name: "x"}, &b); err != nil {
		t.Fatal(err)
	}
	if s := b.Spec; s.EtcdCluster != "db" || s.S3.AWSSecret != "aws" || s.S3.Path != "bucket/db-x" || s.Verify != "Restore" ||
		s.BackupPolicy.Schedule != "" || s.BackupPolicy.TimeoutInSecond != 90 || s.Pod.ServiceAccountName != "saver" {
		t.Errorf("the backup that is like the other is %+v", s)
	}
	r.Wants(0, nil, "etcd", "backup", "db", "--to=s3://b/a/c", "--name=y", "--secret=aws", "--endpoint=http://minio:9000")
	if err := r.Get(t.Context(), client.ObjectKey{Namespace: r.Namespace, Name: "y"}, &b); err != nil {
		t.Fatal(err)
	}
	if s := b.Spec; *s.S3 != (etcdv1beta2.S3Source{Path: "b/a/c", AWSSecret: "aws", Endpoint: "http://minio:9000", ForcePathStyle: true}) || s.Verify != "Hash" {
		t.Errorf("the backup to a URL is %+v", s)
	}
	got := r.Call("etcd", "backup", "db", "--like=nightly", "--name=z", "--wait", "--timeout=1s")
	if got.Code != 124 || got.ErrOut != "error: z is not done after 1s\n" {
		t.Errorf("a wait that is over: %+v", got)
	}
}

func TestEtcdRestore(t *testing.T) {
	r := newRig(t)
	b := r.nightly()
	r.Wants(1, []string{`required flag(s) "into" not set`}, "etcd", "restore", "nightly")
	r.Wants(1, []string{"has made no backup yet"}, "etcd", "restore", "nightly", "--into=copy")
	b.Status.LastBackup = &etcdv1beta2.StoredBackup{Key: "db_v7", Revision: 7, Size: 9, Problem: "another hash"}
	update := func() {
		t.Helper()
		if err := r.Status().Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	update()
	r.Wants(1, []string{"is not to be relied on: another hash"}, "etcd", "restore", "nightly", "--into=copy")
	b.Status.LastBackup.Problem = ""
	update()
	r.Wants(1, []string{"it is no time, such as"}, "etcd", "restore", "nightly", "--into=copy", "--at=yesterday")
	r.Wants(1, []string{"a revision is 1 or more"}, "etcd", "restore", "nightly", "--into=copy", "--revision=-1")
	r.Wants(0, []string{"etcdrestore.etcd.database.coreos.com/n created\n", "There is no EtcdCluster copy yet"},
		"etcd", "restore", "nightly", "--into=copy", "--name=n")
	read := func(name string) etcdv1beta2.RestoreSpec {
		t.Helper()
		var made etcdv1beta2.EtcdRestore
		if err := r.Get(t.Context(), client.ObjectKey{Namespace: r.Namespace, Name: name}, &made); err != nil {
			t.Fatal(err)
		}
		return made.Spec
	}
	if s := read("n"); !s.Newest || s.KeepOld || s.EtcdCluster.Name != "copy" || s.S3.Path != "bucket/db" || s.S3.AWSSecret != "aws" ||
		s.TimeoutInSecond != 90 || s.ServiceAccountName != "saver" {
		t.Errorf("the restore is %+v", s)
	}
	ec := r.cluster()
	const asks = "Replaces all data of etcdcluster/db, which runs, by that of etcdbackup/nightly: its newest backup, revision 7. What was written since is lost."
	r.Wants(1, []string{asks, "Nothing was done: there is no terminal to ask on; add --yes"}, "etcd", "restore", "nightly", "--into=db", "--name=m")
	r.Wants(0, []string{"m created (server dry run)"}, "etcd", "restore", "nightly", "--into=db", "--name=m", "--dry-run=server")
	r.Wants(0, []string{"its newest backup at or before 2026-11-26T08:00:00+01:00. What was written since is lost. Its present volumes are kept.", "m created\n"},
		"etcd", "restore", "nightly", "--into=db", "--name=m", "--yes", "--keep-old", "--at=2026-11-26T08:00:00+01:00")
	if s := read("m"); s.Newest || !s.KeepOld || s.Time == nil || s.Time.UTC().Hour() != 7 {
		t.Errorf("the restore is %+v", s)
	}
	ec.Spec.Paused = true
	if err := r.Update(t.Context(), ec); err != nil {
		t.Fatal(err)
	}
	r.Wants(1, []string{"etcdcluster/db is paused"}, "etcd", "restore", "nightly", "--into=db", "--yes")
	r.Wants(1, []string{"etcdcluster/db: its status has no members: is the operator running?"}, "etcd", "defrag", "db")
}
