package cluster

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/session"
	"example.com/fairlead/operators/etcd/step"
	"example.com/fairlead/operators/etcd/task"
)

// anEtcdRestore is one of the cluster.
func anEtcdRestore() *v1beta2.EtcdRestore {
	return &v1beta2.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: "ns", UID: "uid-of-mine"}, Spec: v1beta2.RestoreSpec{
		EtcdCluster: v1beta2.ClusterReference{Name: "example"},
		RestoreSource: v1beta2.RestoreSource{
			BackupStorageType: v1beta2.StorageS3, BackupSource: v1beta2.BackupSource{S3: &v1beta2.S3Source{Path: "bucket/key", AWSSecret: "aws"}}, TimeoutInSecond: 60,
		},
	}}
}

func (w *world) wants() *world {
	w.seen.Restore = anEtcdRestore()
	w.seen.Restores = []*v1beta2.EtcdRestore{w.seen.Restore}
	return w
}

// isUndecided has an EtcdRestore not say yet of which EtcdCluster it is.
func (w *world) isUndecided() *world {
	w.wants()
	w.seen.Restore, w.seen.Undecided = nil, w.seen.Restore
	return w
}

func (w *world) unwants() *world {
	w.seen.Restores = nil
	return w
}

// verifies is a world in which a restore has begun, with the fourth member for its seed.
func (w *world) verifies() *world {
	w.wants()
	w.seen.Restore, w.ec.Status.MemberNamesUsed = nil, 4
	w.ec.Status.Restoring = &v1beta2.Restoring{ID: "uid-of-mine", Name: "mine", Source: anEtcdRestore().Spec.RestoreSource, Seed: w.name(4), Phase: v1beta2.RestoreVerifying}
	return w
}

func (w *world) switches() *world {
	w.verifies()
	r := w.ec.Status.Restoring
	r.Phase, r.SwitchTime, r.Key, r.ClusterID, r.SeedDataUID = v1beta2.RestoreSwitching, step.TimeOf(noon), "key", "5eed", "pod-4"
	return w
}

type seedOption func(w *world, pod *corev1.Pod)

// hasSeed has the seed's pod be there, and recorded.
func (w *world) hasSeed(options ...seedOption) *world {
	pod, err := objects.SeedPod(w.ec, w.ec.Status.Restoring, "3.6.16", 0, "agent", objects.Certificates{})
	if err != nil {
		panic(err)
	}
	pod.UID, pod.Status.PodIP, pod.Spec.NodeName, pod.Spec.SchedulingGates = "pod-4", "10.0.0.4", "node", nil
	w.seen.Pods[pod.Name] = pod
	if objects.HasVolumes(w.ec) {
		w.seen.Claims[pod.Name] = objects.SeedClaim(w.ec, w.ec.Status.Restoring)
		w.seen.Claims[pod.Name].UID = "pod-4"
	}
	w.ec.Status.Restoring.SeedDataUID = "pod-4"
	w.seen.Answers[pod.Name] = session.Answer{Err: errors.New("refused")}
	for _, option := range options {
		option(w, pod)
	}
	return w
}

func unrecorded(w *world, _ *corev1.Pod) { w.ec.Status.Restoring.SeedDataUID = "" }

func gated(_ *world, pod *corev1.Pod) {
	pod.Spec.NodeName, pod.Spec.SchedulingGates = "", []corev1.PodSchedulingGate{{Name: objects.Gate}}
}

func otherData(_ *world, pod *corev1.Pod) { pod.UID = "pod-99" }

func gone(w *world, _ *corev1.Pod) { w.loses(4) }

func says(pod *corev1.Pod, code int32, r task.Result) {
	text, _ := json.Marshal(r)
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: job.FetchContainer, State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: string(text)},
	}}}
}

func cannotFetch(retriable bool) seedOption {
	return func(_ *world, pod *corev1.Pod) {
		says(pod, 1, task.Result{Problem: &task.Problem{Reason: "Why", Message: "because", Retriable: retriable}})
	}
}

func fetched(_ *world, pod *corev1.Pod) {
	says(pod, 0, task.Result{Fetched: &task.Fetched{Key: "key", Revision: 30, Offset: task.RevisionsAhead, ClusterID: "5eed"}})
}

func serving(w *world, pod *corev1.Pod) {
	w.seen.Answers[pod.Name] = session.Answer{
		Status: members.Status{ClusterID: 0x5eed, ID: 4, Version: "3.6.16", Leader: 4, RaftTerm: 2, Revision: 30 + task.RevisionsAhead, StorageVersion: "3.6.0"},
		List:   members.List{ClusterID: 0x5eed, By: 4, Members: []members.Member{{ID: 4, Name: pod.Name, PeerURLs: []string{objects.PeerURLOf(w.ec, pod.Name)}}}},
	}
}

func behind(w *world, pod *corev1.Pod) {
	a := w.seen.Answers[pod.Name]
	a.Status.Revision--
	w.seen.Answers[pod.Name] = a
}

// runs has a container run, whatever its pod is to do.
func (w *world) runs(n int64) *world {
	w.seen.Pods[w.name(n)].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return w
}

// stops has members be stopped for the restore.
func (w *world) stops(numbers ...int64) *world {
	for _, n := range numbers {
		pod := w.seen.Pods[w.name(n)]
		pod.Spec.Containers[0].Image, pod.Annotations[annotation.Image] = objects.NoImage, objects.NoImage
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerName, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "InvalidImageName"}}}}
		w.stoppedFor(n, w.name(4)).silences(n)
	}
	return w
}

func (w *world) stoppedFor(n int64, seed string) *world {
	w.seen.Pods[w.name(n)].Annotations[annotation.StoppedFor] = seed
	return w
}

// hasWritten has the cluster be at a revision.
func (w *world) hasWritten(revision int64) *world {
	w.seen.Revision = revision
	return w
}

func (w *world) passes(d time.Duration) *world {
	w.seen.Now = w.seen.Now.Add(d)
	return w
}

func keepsOld(w *world) { w.ec.Status.Restoring.KeepOld = true }

// switched has the cluster be the seed's, which has no labels of a member yet.
func (w *world) switched(options ...func(*world)) *world {
	w.switches().hasSeed(fetched, serving)
	r, st := w.ec.Status.Restoring, &w.ec.Status
	r.Phase, r.Replaced = v1beta2.RestoreCompleting, slices.Sorted(slices.Values([]string{w.name(1), w.name(2), w.name(3)}))
	st.ClusterID, st.Founders = "5eed", nil
	st.MemberList = []v1beta2.MemberStatus{{Name: r.Seed, ID: "4", DataUID: "pod-4", Version: "3.6.16"}}
	w.seen.Unmarked = append(w.seen.Unmarked, w.seen.Pods[r.Seed])
	for _, option := range options {
		option(w)
	}
	return w
}

func (w *world) isMember() *world {
	w.seen.Unmarked, w.ec.Status.ReadyMembers = nil, 1
	w.seen.Pods[w.name(4)].Labels[objects.VoterLabel] = "true"
	w.seen.Reached[w.seen.Pods[w.name(4)].UID] = true
	return w
}

func (w *world) isOver() *world {
	w.ec.Status.Restored = &v1beta2.Restored{ID: w.ec.Status.Restoring.ID, Name: "mine"}
	w.ec.Status.Restoring = nil
	return w
}

func (w *world) hasOldSeed(n int64) *world {
	w.seen.Seeds = append(w.seen.Seeds, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: w.name(n), UID: "old"}})
	return w
}

func (w *world) hasFailed() *world {
	w.wants()
	w.seen.Restore = nil
	w.ec.Status.Restored = &v1beta2.Restored{ID: "uid-of-mine", Name: "mine", FailureMessage: "Why: because"}
	return w
}
