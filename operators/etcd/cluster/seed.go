package cluster

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podsecurity"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/operators/etcd/annotation"
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

// seedLabels are those of a seed's pod and volume.
func seedLabels(ec *v1beta2.EtcdCluster) map[string]string {
	all := podtemplate.Labels(name, ec.Name)
	all["app.kubernetes.io/name"], all[seedLabel] = "etcd-restore", seedValue
	return all
}

// seedSelector is what the seeds of a cluster are listed by.
func seedSelector(ec *v1beta2.EtcdCluster) map[string]string {
	return map[string]string{"app.kubernetes.io/instance": names.LabelValue(ec.Name), seedLabel: seedValue}
}

// memberLabels are the labels that make a member of a seed, or give them back to a member.
func memberLabels(ec *v1beta2.EtcdCluster, member string) map[string]any {
	all := map[string]any{seedLabel: nil}
	for name, value := range labels(ec, member) {
		all[name] = value
	}
	return all
}

// seedPod is the pod of a seed.
func seedPod(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring, version, image string, certs certificates) (*corev1.Pod, error) {
	t, err := fetchTask(ec, r)
	if err != nil {
		return nil, err
	}
	p := pod(ec, r.Seed, version, start{isSealed: true, isGated: true, token: seedToken(ec, r)}, certs)
	p.Labels = seedLabels(ec)
	fetch, volumes := job.Fetch(image, t, r.Source.BackupSource, corev1.VolumeMount{Name: volumeName, MountPath: dataPath})
	fetch.Env = []corev1.EnvVar{{Name: task.MemberVariable, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + nodeLabel + "']"},
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
func fetchTask(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring) (task.Task, error) {
	s := r.Source
	place, err := task.PlaceOf(s.BackupStorageType, s.BackupSource)
	if err != nil {
		return task.Task{}, err
	}
	t := task.Task{
		Action: task.Fetch, Place: place, Timeout: time.Duration(max(s.TimeoutInSecond, 1)) * time.Second,
		Member: &task.Member{Name: r.Seed, PeerURL: peerURLOf(ec, r.Seed), Token: seedToken(ec, r), DataDir: dataPath + "/data"},
	}
	if s.Revision != nil || s.Time != nil || s.Newest {
		t.Choose = &task.Wanted{Revision: s.Revision}
		if s.Time != nil {
			t.Choose.Time = &s.Time.Time
		}
	}
	return t, nil
}

// seedClaim requests the volume of a seed.
func seedClaim(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring) *corev1.PersistentVolumeClaim {
	c := claim(ec, r.Seed)
	c.Labels = maps.Clone(seedLabels(ec))
	return c
}

// createSeed creates the seed, and lets it go once status has recorded what has its data: one that is
// created again by somebody who does not know that does not run.
func (p *plan) createSeed(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring) {
	m := p.view.seed
	version, pod := p.view.versionFor(ec, m).String(), m.pod
	if m.isOnVolume && m.claim == nil {
		p.Do(loop.Create{Object: seedClaim(ec, r), IfCurrent: true})
	}
	switch {
	case pod == nil:
		made, err := seedPod(ec, r, version, p.view.agentImage, p.view.certs)
		if err != nil {
			r.Problem = err.Error()
			return
		}
		p.Do(loop.Create{Object: made, IfCurrent: true})
	case isEnding(pod) || m.data == "":
	case isOver(pod):
		p.Remove(pod, "it has ended")
	case r.SeedDataUID == "":
		r.SeedDataUID = m.data
		p.claim("seeded")
	case pods.IsGated(pod, gate):
		p.letGo(pod)
	case !m.hasAnswered() && (pod.Spec.NodeName == "" || lacksImage(pod)) &&
		(imageIn(pod) != imageOf(ec, version) || annotation.Of(pod, annotation.Template) != templateHash(ec)):
		p.Remove(pod, "it could not be started, and the spec has changed")
	}
}

// removeSeeds deletes the seeds that status does not name: of restores that have failed, or that went
// on with another one. A cluster whose status was emptied may be one's.
func (p *plan) removeSeeds(ec *v1beta2.EtcdCluster) {
	st := ec.Status
	if st.ClusterID == "" && len(st.Founders) == 0 && st.Restoring == nil && st.Restored == nil {
		return
	}
	for _, obj := range p.view.seeds {
		name := obj.GetName()
		m := p.view.of(name)
		isNamed := st.Restoring != nil && st.Restoring.Seed == name || m.isMember || m.was.Name != ""
		if !isNamed && !isEnding(obj) {
			p.Remove(obj, "it is the seed of a restore that is over")
		}
	}
}

// sameSource says whether two sources are the same.
func sameSource(a, b v1beta2.RestoreSource) bool {
	if a.Time != nil && b.Time != nil && a.Time.Equal(b.Time) {
		a.Time, b.Time = nil, nil // whatever their time zones
	}
	return reflect.DeepEqual(a, b)
}

// hiddenSeed are the seed's pod and volume, as far as they have lost the label by which the cache shows
// them.
func (v *view) hiddenSeed() []client.Object {
	var all []client.Object
	if v.seed == nil {
		return nil
	}
	if pod := v.seed.pod; pod != nil && pod.Labels[apply.ManagedByLabel] != managedBy {
		all = append(all, pod)
	}
	if c := v.seed.claim; c != nil && c.Labels[apply.ManagedByLabel] != managedBy {
		all = append(all, c)
	}
	return all
}

// haveStopped says whether no replaced member runs, or can be started again.
func (v *view) haveStopped(ec *v1beta2.EtcdCluster, r *v1beta2.Restoring) bool {
	for _, m := range v.present {
		isOld := slices.Contains(r.Replaced, m.name) || m.was.Name == "" && m.name != ec.Status.MemberBeingAdded
		if m.pod == nil || !isOld || isOver(m.pod) {
			continue
		}
		if annotation.Of(m.pod, annotation.StoppedFor) != r.Seed || imageIn(m.pod) != noImage || !hasStopped(m.pod) {
			return false
		}
	}
	return true
}
