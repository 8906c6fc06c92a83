package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/task"
)

// neverBack holds for every two versions of an EtcdBackup that follow each other: what is known
// of backups is not forgotten, and each try has its own claim.
func neverBack(before, now client.Object) error {
	is := now.(*v1beta2.EtcdBackup).Status
	if is.Running != nil && is.Running.Number != is.Tries {
		return fmt.Errorf("try %d is under way, after %d tries", is.Running.Number, is.Tries)
	}
	if before == nil || before.GetUID() != now.GetUID() {
		return nil
	}
	was := before.(*v1beta2.EtcdBackup).Status
	switch {
	case was.LastBackup != nil && (is.LastBackup == nil || is.LastBackup.Number < was.LastBackup.Number):
		return fmt.Errorf("backup %d was forgotten", was.LastBackup.Number)
	case was.LastProof != nil && (is.LastProof == nil || is.LastProof.Number < was.LastProof.Number):
		return fmt.Errorf("the proof of backup %d was forgotten", was.LastProof.Number)
	case was.LastSuccessDate != nil && is.LastSuccessDate == nil:
		return errors.New("the last success was forgotten")
	case is.Tries != was.Tries && is.Tries != was.Tries+1:
		return fmt.Errorf("tries went from %d to %d", was.Tries, is.Tries)
	case was.Running != nil && is.Running != nil && *was.Running != *is.Running:
		return fmt.Errorf("the claim of try %d was replaced", was.Running.Number)
	case is.PrunedAfter != was.PrunedAfter && isProved(now.(*v1beta2.EtcdBackup)) && (is.LastProof == nil || is.LastProof.Number != is.PrunedAfter):
		return fmt.Errorf("after backup %d, which was not proved, others were removed", is.PrunedAfter)
	}
	return nil
}

// simulatedWorld is what the invariants look at.
type simulatedWorld struct{ world *sim.World }

// never returns what must never be so after a change of the cluster: that two pods of an EtcdBackup may
// do something, or that a pod is deleted of which the backup that it has made is not in status.
func never(c sim.Change, r *testkit.Run) error {
	pod, ok := c.New.(*corev1.Pod)
	if !ok {
		return nil
	}
	s := r.Own.(simulatedWorld)
	if err := s.areAlone(); err != nil {
		return err
	}
	old, _ := c.Old.(*corev1.Pod)
	isEnd := old != nil && old.DeletionTimestamp == nil && (pod.DeletionTimestamp != nil || c.Type == watch.Deleted)
	if !isEnd || !strings.HasPrefix(c.By, "operator") {
		return nil
	}
	return s.isRecorded(old)
}

// areAlone returns an error if two pods of an EtcdBackup may do something. One that was deleted and does
// not end is not waited for.
func (s simulatedWorld) areAlone() error {
	atWork := map[types.UID]string{}
	var err error
	sim.Each(s.world.Server, func(pod *corev1.Pod) {
		owner := metav1.GetControllerOf(pod)
		isOver := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if owner == nil || pods.IsGated(pod, gate) || isOver || isLost(pod, s.world.Latest()) {
			return
		}
		if other := atWork[owner.UID]; other != "" {
			err = fmt.Errorf("%s and %s are at work at the same time", other, pod.Name)
		}
		atWork[owner.UID] = pod.Name
	})
	return err
}

// isRecorded returns an error if a pod has made a backup that status does not have.
func (s simulatedWorld) isRecorded(pod *corev1.Pod) error {
	said := job.Read(pod)
	if said.Result == nil || said.Result.Saved == nil {
		return nil
	}
	var err error
	sim.Each(s.world.Server, func(b *v1beta2.EtcdBackup) {
		number := taskOf(pod).Number
		if metav1.IsControlledBy(pod, b) && (b.Status.LastBackup == nil || b.Status.LastBackup.Number < number) {
			err = fmt.Errorf("pod %s is deleted, and the backup %d that it has made is not in status", pod.Name, number)
		}
	})
	return err
}

// taskOf is what the agent of a pod was told.
func taskOf(pod *corev1.Pod) task.Task {
	var todo task.Task
	for _, c := range pod.Spec.Containers {
		if c.Name == job.AgentContainer && len(c.Args) == 1 {
			_ = json.Unmarshal([]byte(c.Args[0]), &todo)
		}
	}
	return todo
}
