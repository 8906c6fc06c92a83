package cluster

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/members"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/session"
)

// budgeted is a world with a PodDisruptionBudget of somebody else's.
func budgeted(w *world, name string) *world {
	w.seen.Budgets = []string{name}
	return w
}

func (w *world) container(n int64, state, last corev1.ContainerState) *world {
	pod := w.seen.Pods[w.name(n)]
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerName, State: state, LastTerminationState: last, RestartCount: 5}}
	return w
}

func (w *world) waits(n int64, reason, message string) *world {
	return w.container(n, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}, corev1.ContainerState{})
}

// losesVolumeSoon has the volume of a member be deleted, which waits for its pod.
func (w *world) losesVolumeSoon(n int64) *world {
	w.seen.Claims[w.name(n)].DeletionTimestamp = &metav1.Time{Time: noon}
	return w
}

func (w *world) crashes(n int64, said string) *world {
	return w.container(n, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
		corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: said}})
}

func (w *world) unschedulable(n int64, why string) *world {
	pod := w.seen.Pods[w.name(n)]
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: why}}
	return w
}

// served is an EtcdCluster of which status says that all is well.
func served(ec *v1beta2.EtcdCluster) {
	for i := range ec.Status.MemberList {
		ec.Status.MemberList[i].Ready = true
	}
	conditions := status.Conditions{List: &ec.Status.Conditions, Generation: ec.Generation}
	conditions.MarkReady(reason.Ready, "All 3 members serve")
	conditions.Set(v1beta2.ConditionAvailable, true, reason.Serving, "A quorum of members serves")
}

// heard has members that had a leader so long ago, and whose pods are ready.
func (w *world) heard(ago time.Duration, numbers ...int64) *world {
	w.seen.Led = map[string]time.Time{}
	for _, n := range numbers {
		w.seen.Led[w.name(n)] = noon.Add(-ago)
		w.seen.Pods[w.name(n)].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return w
}

// probesFail has the node of a member find that it does not serve.
func (w *world) probesFail(n int64) *world {
	w.seen.Pods[w.name(n)].Status.Conditions[0].Status = corev1.ConditionFalse
	return w
}

// hangs has members accept requests, and not answer.
func (w *world) hangs(numbers ...int64) *world {
	for _, n := range numbers {
		w.answer(n, func(a *session.Answer) {
			*a = session.Answer{Err: fmt.Errorf("no answer: %w", context.DeadlineExceeded)}
		})
	}
	return w
}

// elects has a member lead that no other has heard of yet.
func (w *world) elects(n int64) *world {
	w.answer(n, func(a *session.Answer) { a.Status.Leader, a.Status.RaftTerm = members.ID(n), a.Status.RaftTerm+1 })
	return w
}

// refuses has members answer only users.
func (w *world) refuses(numbers ...int64) *world {
	for _, n := range numbers {
		w.answer(n, func(a *session.Answer) { *a = session.Answer{Err: members.ErrAuth} })
	}
	return w
}

// podsOf has the pods be of a version.
func (w *world) podsOf(version string) *world {
	for _, pod := range w.seen.Pods {
		pod.Annotations[annotation.Version] = version
	}
	return w
}

func (w *world) doubts(why string) *world {
	w.seen.Certs.Doubt = why
	return w
}

func (w *world) taken(n int64) *world {
	w.seen.Taken = w.seen.Pods[w.name(n)]
	return w
}

// startsFrom has the cluster be started again from a member.
func (w *world) startsFrom(n int64) *world {
	w.ec.Status.QuorumLoss = &v1beta2.QuorumLoss{ID: "loss", Accepted: true, From: w.name(n)}
	w.ec.Spec.AcceptDataLoss = "loss"
	return w.leaderless()
}
