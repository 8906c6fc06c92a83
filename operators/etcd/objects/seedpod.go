package objects

import (
	"cmp"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/podsecurity"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/task"
)

// This file is about the pod and the volume of a seed. They are a member's, but for the labels, and
// for an init container that makes the data of a backup. When the cluster is the seed's, they get
// the labels, as what has lost them does.

// A seed has this label, and none of those that a member has.
const (
	seedLabel = job.ComponentLabel
	seedValue = "seed"
)

// SeedLabels are those of a seed's pod and volume.
func SeedLabels(ec *v1beta2.EtcdCluster) map[string]string {
	all := podtemplate.Labels(Operator, ec.Name)
	all["app.kubernetes.io/name"], all[seedLabel] = "etcd-restore", seedValue
	return all
}

// SeedSelector is what the seeds of a cluster are listed by.
func SeedSelector(ec *v1beta2.EtcdCluster) map[string]string {
	return map[string]string{"app.kubernetes.io/instance": names.LabelValue(ec.Name), seedLabel: seedValue}
}

// MemberLabels are the labels that make a member of a seed, or give them back to a member.
func MemberLabels(ec *v1beta2.EtcdCluster, member string) map[string]any {
	all := map[string]any{seedLabel: nil}
	for name, value := range labels(ec, member) {
		all[name] = value
	}
	return all
}

// SeedPod is the pod of a seed, whose revisions begin after the last one that is known of the cluster.
func SeedPod(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring, version string, last int64, image string, certs Certificates) (*corev1.Pod, error) {
	t, err := fetchTask(ec, r, version, last)
	if err != nil {
		return nil, err
	}
	p := Pod(ec, r.Seed, version, Start{IsSealed: true, isGated: true, Token: seedToken(ec, r)}, certs)
	p.Labels = SeedLabels(ec)
	fetch, volumes := job.Fetch(image, t, r.Source.BackupSource, corev1.VolumeMount{Name: volumeName, MountPath: DataPath})
	fetch.Env = []corev1.EnvVar{{Name: task.MemberVariable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + NodeLabel + "']"},
	}}}
	if ec.Spec.Pod != nil { // a quota may want them of every container
		podtemplate.SetResources(&fetch, ec.Spec.Pod.Resources)
	}
	p.Spec.InitContainers = []corev1.Container{fetch}
	p.Spec.Volumes = append(p.Spec.Volumes, volumes...)
	p.Spec.ServiceAccountName = cmp.Or(r.Source.ServiceAccountName, p.Spec.ServiceAccountName)
	besideMembers(ec, r.Seed, &p.Spec)
	podsecurity.Restrict(&p.Spec, etcdUser, job.FetchContainer)
	return p, nil
}

// besideMembers lets the seed be scheduled where members are that it will replace. Those that are
// added to it later keep away from it.
func besideMembers(ec *v1beta2.EtcdCluster, seed string, spec *corev1.PodSpec) {
	if spec.Affinity == nil || spec.Affinity.PodAntiAffinity == nil {
		return
	}
	required := &spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	*required = slices.DeleteFunc(*required, func(term corev1.PodAffinityTerm) bool {
		selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
		return err == nil && selector.Matches(k8slabels.Set(labels(ec, seed)))
	})
}

// seedToken keeps the clusters of seeds apart: no two have the same ID.
func seedToken(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring) string {
	return string(ec.UID) + "/" + r.Seed
}

// fetchTask is what the init container of a seed does.
func fetchTask(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring, version string, last int64) (task.Task, error) {
	s := r.Source
	place, err := task.PlaceOf(s.BackupStorageType, s.BackupSource)
	if err != nil {
		return task.Task{}, err
	}
	t := task.Task{
		Action: task.Fetch, Place: place, Timeout: time.Duration(max(s.TimeoutInSecond, 1)) * time.Second,
		Member: &task.Member{Name: r.Seed, PeerURL: PeerURLOf(ec, r.Seed), Token: seedToken(ec, r), DataDir: DataPath + "/data", After: last, Version: version},
	}
	if s.Revision != nil || s.Time != nil || s.Newest {
		t.Choose = &task.Wanted{Revision: s.Revision, ClusterID: ec.Status.ClusterID}
		if s.Time != nil {
			t.Choose.Time = &s.Time.Time
		}
	}
	return t, nil
}

// SeedClaim requests the volume of a seed.
func SeedClaim(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring) *corev1.PersistentVolumeClaim {
	c := Claim(ec, r.Seed)
	c.Labels = maps.Clone(SeedLabels(ec))
	return c
}

// StopsMembers says whether a restore is under way that has begun to stop members. Until then the cluster serves as before;
// from then on the seed is what serves, or will. Nil is no restore.
func StopsMembers(r *v1beta2.Restoring) bool {
	return r != nil && r.Phase != v1beta2.RestoreVerifying
}
