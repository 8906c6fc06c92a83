package backup

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/task"
)

const (
	// usualTimeout is the one of a spec without a policy.
	usualTimeout = time.Minute
	// usualRepository has the image of etcd where no EtcdCluster says another one.
	usualRepository = "quay.io/coreos/etcd"
)

// pod is the pod of a try, behind its gate.
func pod(b *v1beta2.EtcdBackup, seen observation, number int64, step v1beta2.BackupStep, place task.Place, image string) *corev1.Pod {
	want := job.Pod{
		Namespace: b.Namespace, Name: podName(b, number, step),
		Owner:    ownerOf(b),
		Instance: b.Name,
		Image:    image,
		Task: task.Task{
			Action: task.Action(step), Place: place,
			Owner: string(b.UID), Number: number, Timeout: timeout(b), Periodic: isPeriodic(b),
		},
		Source:   b.Spec.BackupSource,
		Settings: b.Spec.Pod,
	}
	switch step {
	case v1beta2.BackupSave:
		want.ClientSecret = clientSecret(b, seen)
		want.Task.TLS, want.Task.Endpoints = want.ClientSecret != "", endpoints(b, seen)
		want.UserSecret = userSecret(b, seen)
		want.Task.User = want.UserSecret != ""
		want.Task.Hash = isProved(b)
	case v1beta2.BackupProve:
		want.Task.Saved, want.EtcdImage = b.Status.LastBackup.DeepCopy(), etcdImage(b, seen)
	case v1beta2.BackupPrune:
		want.Task.Keep = kept(b)
	}
	made := job.New(want)
	made.Annotations[annotation.Generation], made.Annotations[annotation.BackupUID] = strconv.FormatInt(b.Generation, 10), string(b.UID)
	made.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: gate}}
	return made
}

func ownerOf(b *v1beta2.EtcdBackup) metav1.OwnerReference {
	return *metav1.NewControllerRef(b, v1beta2.GroupVersion.WithKind("EtcdBackup"))
}

func timeout(b *v1beta2.EtcdBackup) time.Duration {
	if b.Spec.BackupPolicy == nil || b.Spec.BackupPolicy.TimeoutInSecond == 0 {
		return usualTimeout
	}
	return time.Duration(b.Spec.BackupPolicy.TimeoutInSecond) * time.Second
}

// endpoints are where a snapshot is taken from.
func endpoints(b *v1beta2.EtcdBackup, seen observation) []string {
	if seen.cluster != nil {
		return objects.ClientURLs(seen.cluster)
	}
	return b.Spec.EtcdEndpoints
}

// clientSecret is the Secret with the client's certificate; empty if there is none.
func clientSecret(b *v1beta2.EtcdBackup, seen observation) string {
	if seen.cluster != nil {
		return clusterSecret(seen.cluster)
	}
	return b.Spec.ClientTLSSecret
}

// userSecret is the Secret with etcd's user; empty if there is none.
func userSecret(b *v1beta2.EtcdBackup, seen observation) string {
	if seen.cluster == nil {
		return b.Spec.ClientUserSecret
	}
	return rootSecret(seen.cluster)
}

// etcdImage is the image of the throw-away etcd of a proof: of the version that the backup is from.
func etcdImage(b *v1beta2.EtcdBackup, seen observation) string {
	version := b.Status.LastBackup.EtcdVersion
	if seen.cluster != nil {
		return objects.ImageOf(seen.cluster, version)
	}
	return usualRepository + ":v" + version
}

// kept is what a pruning keeps.
func kept(b *v1beta2.EtcdBackup) *task.Retention {
	policy := b.Spec.BackupPolicy
	keep := &task.Retention{Max: policy.MaxBackups, Last: b.Status.LastBackup.Key}
	if policy.MaxAge != nil {
		keep.MaxAge = policy.MaxAge.Duration
	}
	if b.Status.LastProof != nil {
		keep.Proved = b.Status.LastProof.Key
	}
	return keep
}
