package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// replicaSets is the controller of ReplicaSets: it makes and deletes pods, and counts them.
// Unlike the real one it has no cache of its own: what it sees is true when it acts, as
// the real one's expectations make sure.
type replicaSets struct {
	world *World
	made  map[string]int // pods, by the names of ReplicaSets: a name is never given twice
}

// NewReplicaSets makes the controller of ReplicaSets, without which that of Deployments
// does nothing.
func NewReplicaSets(w *World) Controller { return &replicaSets{world: w, made: map[string]int{}} }

func (*replicaSets) Name() string { return "replicaset controller" }

// Act makes or deletes one pod, or reports the status of one ReplicaSet.
func (c *replicaSets) Act() (did bool, wake time.Time) {
	s := c.world.Server
	pods := podsByController(s)
	var act func() error
	Each(s, func(rs *appsv1.ReplicaSet) {
		if act == nil && rs.DeletionTimestamp == nil {
			act = c.next(rs, pods[rs.UID], &wake)
		}
	})
	if act == nil {
		return false, wake
	}
	c.world.Fail(act())
	return true, time.Time{}
}

// podsByController are the pods that somebody controls and that are neither deleted nor
// over, by the UID of their controller.
func podsByController(s *Server) map[types.UID][]*corev1.Pod {
	all := map[types.UID][]*corev1.Pod{}
	Each(s, func(pod *corev1.Pod) {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil || pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			return
		}
		all[ref.UID] = append(all[ref.UID], pod)
	})
	return all
}

// next is the next thing to do for a ReplicaSet; nil if there is nothing.
func (c *replicaSets) next(rs *appsv1.ReplicaSet, pods []*corev1.Pod, wake *time.Time) func() error {
	s := c.world.Server
	switch more := int(*rs.Spec.Replicas) - len(pods); {
	case more > 0:
		return func() error { return c.add(rs) }
	case more < 0:
		return func() error {
			return s.Delete(slices.MinFunc(pods, leavesFirst), c.Name())
		}
	}
	status := appsv1.ReplicaSetStatus{ObservedGeneration: rs.Generation, Replicas: int32(len(pods)), Conditions: rs.Status.Conditions}
	for _, pod := range pods {
		if hasLabels(pod.Labels, rs.Spec.Template.Labels) {
			status.FullyLabeledReplicas++
		}
		since, ready := readySince(pod)
		if !ready {
			continue
		}
		status.ReadyReplicas++
		if at := since.Add(time.Duration(rs.Spec.MinReadySeconds) * time.Second); !c.world.Now().Before(at) {
			status.AvailableReplicas++
		} else if wake.IsZero() || at.Before(*wake) {
			*wake = at
		}
	}
	was := rs.Status
	if was.ObservedGeneration == status.ObservedGeneration && was.Replicas == status.Replicas && was.FullyLabeledReplicas == status.FullyLabeledReplicas &&
		was.ReadyReplicas == status.ReadyReplicas && was.AvailableReplicas == status.AvailableReplicas {
		return nil
	}
	return func() error {
		told := rs.DeepCopy()
		told.Status = status
		return s.Replace(told, c.Name())
	}
}

// add makes a pod of a ReplicaSet.
func (c *replicaSets) add(rs *appsv1.ReplicaSet) error {
	c.made[rs.Name]++
	template := rs.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = rs.Namespace, fmt.Sprintf("%s-%05d", rs.Name, c.made[rs.Name])
	pod.GenerateName = rs.Name + "-"
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
	_, err := c.world.Server.Add(pod, c.Name())
	return err
}

// leavesFirst is the order in which pods are deleted when there are too many, as the real
// controller has it: what serves stays longest.
func leavesFirst(a, b *corev1.Pod) int {
	first := func(is bool) int {
		if is {
			return 0
		}
		return 1
	}
	rank := map[corev1.PodPhase]int{corev1.PodUnknown: 1, corev1.PodRunning: 2}
	sinceA, readyA := readySince(a)
	sinceB, readyB := readySince(b)
	return cmp.Or(
		first(a.Spec.NodeName == "")-first(b.Spec.NodeName == ""),
		rank[a.Status.Phase]-rank[b.Status.Phase],
		first(!readyA)-first(!readyB),
		sinceB.Compare(sinceA), // ready for less time
		int(restartsOf(b)-restartsOf(a)),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(b.Name, a.Name),
	)
}

func restartsOf(pod *corev1.Pod) (n int32) {
	for _, c := range pod.Status.ContainerStatuses {
		n = max(n, c.RestartCount)
	}
	return n
}

// readySince is since when a pod has been ready, and whether it is.
func readySince(pod *corev1.Pod) (time.Time, bool) {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, false
}

func hasLabels(labels, wanted map[string]string) bool {
	for k, v := range wanted {
		if labels[k] != v {
			return false
		}
	}
	return true
}
