package sim

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file is what the controller of Deployments says about them.

const (
	newReplicaSetAvailable = "NewReplicaSetAvailable"
	deadlineExceeded       = "ProgressDeadlineExceeded"
)

// deploymentComplete says whether all pods are new and available.
func deploymentComplete(d *appsv1.Deployment, s *appsv1.DeploymentStatus) bool {
	want := *d.Spec.Replicas
	return s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want && s.ObservedGeneration >= d.Generation
}

// conditionOf is a condition of a Deployment; nil if there is none.
func conditionOf(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

// setCondition sets a condition, unless it is the same but for the message.
func (c *deployments) setCondition(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType, value corev1.ConditionStatus, reason, message string) {
	now := metav1.NewTime(c.world.Now().Truncate(time.Second))
	set := appsv1.DeploymentCondition{Type: kind, Status: value, Reason: reason, Message: message, LastUpdateTime: now, LastTransitionTime: now}
	if was := conditionOf(s, kind); was != nil {
		if was.Status == value && was.Reason == reason {
			return
		}
		if was.Status == value {
			set.LastTransitionTime = was.LastTransitionTime
		}
	}
	dropCondition(s, kind)
	s.Conditions = append(s.Conditions, set)
}

func dropCondition(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}

// syncStatus reports how far the rollout is; nil if that is known.
func (r *rollout) syncStatus(wake *time.Time) func() error {
	d, all := r.d, r.all()
	was := &d.Status
	_, unavailable := fenceposts(d)
	status := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation,
		Replicas:           sum(all, func(rs *appsv1.ReplicaSet) int32 { return rs.Status.Replicas }),
		ReadyReplicas:      sum(all, func(rs *appsv1.ReplicaSet) int32 { return rs.Status.ReadyReplicas }),
		AvailableReplicas:  sum(all, available),
		CollisionCount:     was.CollisionCount,
		Conditions:         slices.Clone(was.Conditions),
	}
	if r.newest != nil {
		status.UpdatedReplicas = r.newest.Status.Replicas
	}
	status.UnavailableReplicas = max(0, sum(all, requested)-status.AvailableReplicas)
	if status.AvailableReplicas >= *d.Spec.Replicas-unavailable {
		r.setCondition(&status, appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		r.setCondition(&status, appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
	at := r.syncProgress(&status)
	if equality.Semantic.DeepEqual(was, &status) {
		if !at.IsZero() && (wake.IsZero() || at.Before(*wake)) {
			*wake = at
		}
		return nil
	}
	return func() error {
		told := d.DeepCopy()
		told.Status = status
		return r.world.Server.Replace(told, r.Name())
	}
}

// syncProgress sets the condition Progressing, and returns when it is to be looked at
// again; zero for never.
func (r *rollout) syncProgress(status *appsv1.DeploymentStatus) time.Time {
	d, was := r.d, &r.d.Status
	deadline := d.Spec.ProgressDeadlineSeconds
	if deadline == nil || *deadline == 1<<31-1 {
		dropCondition(status, appsv1.DeploymentProgressing)
		return time.Time{}
	}
	current := conditionOf(was, appsv1.DeploymentProgressing)
	name := d.Name
	if r.newest != nil {
		name = r.newest.Name
	}
	isDone := status.Replicas == status.UpdatedReplicas && current != nil && current.Reason == newReplicaSetAvailable
	if isDone || d.Spec.Paused {
		return time.Time{}
	}
	oldPods, oldPodsBefore := status.Replicas-status.UpdatedReplicas, was.Replicas-was.UpdatedReplicas
	switch {
	case deploymentComplete(d, status):
		r.setCondition(status, appsv1.DeploymentProgressing, corev1.ConditionTrue, newReplicaSetAvailable,
			fmt.Sprintf("ReplicaSet %q has successfully progressed.", name))
	case status.UpdatedReplicas > was.UpdatedReplicas || oldPods < oldPodsBefore || status.ReadyReplicas > was.ReadyReplicas || status.AvailableReplicas > was.AvailableReplicas:
		dropCondition(status, appsv1.DeploymentProgressing) // so that it has the time of this progress
		r.setCondition(status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", fmt.Sprintf("ReplicaSet %q is progressing.", name))
		if set := conditionOf(status, appsv1.DeploymentProgressing); current != nil && current.Status == corev1.ConditionTrue {
			set.LastTransitionTime = current.LastTransitionTime
		}
	case current == nil || current.Reason == newReplicaSetAvailable || current.Reason == deadlineExceeded:
	default:
		// The real one looks again a second later.
		at := current.LastUpdateTime.Add(time.Duration(*deadline)*time.Second + time.Second)
		if r.world.Now().Before(at) {
			return at
		}
		r.setCondition(status, appsv1.DeploymentProgressing, corev1.ConditionFalse, deadlineExceeded, fmt.Sprintf("ReplicaSet %q has timed out progressing.", name))
	}
	return time.Time{}
}
