package cluster

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/annotation"
	"example.com/fairlead/operators/etcd/objects"
	"example.com/fairlead/operators/etcd/reason"
	"example.com/fairlead/operators/etcd/restoring"
	"example.com/fairlead/operators/etcd/view"
)

// writeProblem reports a write that failed.
func writeProblem(failure error) *status.Problem {
	p := apply.Problem(failure, "EtcdCluster")
	if failed, ok := errors.AsType[*loop.WriteError](failure); ok && p.Reason == apply.ReasonRetrying {
		if _, isRequest := failed.Write.(loop.Call); isRequest {
			p.Message = "A request to etcd failed and is retried: " + status.Shortened(failure.Error())
		}
	}
	return p
}

// paused reports that nothing is changed, and what does not serve meanwhile. In the middle of a restore that may be all.
func paused(ec *v1beta2.EtcdCluster, st *v1beta2.EtcdClusterStatus, waiting string) *status.Problem {
	r := st.Restoring
	isMidway := objects.StopsMembers(r)
	switch {
	case !ec.Spec.Paused:
		return nil
	case isMidway && meta.IsStatusConditionFalse(st.Conditions, v1beta2.ConditionAvailable):
		return &status.Problem{Reason: reason.PausedInRestore, Message: fmt.Sprintf("Paused in the middle of %s: its members are stopped, nothing serves until spec.paused is false", restoring.Called(r))}
	}
	message := "spec.paused is true: nothing of the cluster is changed"
	if isMidway {
		message += ", in the middle of " + restoring.Called(r)
	}
	if waiting != "" {
		message += "; " + waiting
	}
	return &status.Problem{Reason: reason.Paused, Message: message}
}

// doomed reports a volume that is being deleted: Kubernetes waits with that until its pod ends, and nothing brings it back.
func doomed(next *plan) *status.Problem {
	m := next.view.Find(func(m *view.Member) bool { return m.Claim != nil && objects.IsEnding(m.Claim) && m.Pod != nil })
	if m == nil {
		return nil
	}
	return &status.Problem{Reason: reason.VolumeGoes, Message: fmt.Sprintf("PersistentVolumeClaim %s of a member that serves is being deleted: the member's data is gone when its pod ends, for whatever reason. To have the member replaced before: kubectl annotate pod %s %s=true",
		m.Claim.Name, m.PodName, annotation.Replace)}
}

// voterDown reports a voter whose data is lost, or that is down, before members that are to be added, or fewer: those may
// wait for a node for long.
func voterDown(next *plan, st *v1beta2.EtcdClusterStatus, waiting string) *status.Problem {
	m := next.view.Find(func(m *view.Member) bool {
		return !m.IsForeign() && m.IsVoter() && m.IsStarted() && !m.Follows && !m.MayFollow && !m.Problem.IsStarting
	})
	if m == nil || next.Activity != v1beta2.ConditionScaling || st.ClusterID == "" {
		return nil
	}
	p := unavailable(st, waiting)
	if p != nil {
		p.Message += "; " + next.Doing
	}
	return p
}

// complaint is what a member says is wrong with it that the operator does not know.
func complaint(ec *v1beta2.EtcdCluster, next *plan) *status.Problem {
	m := next.view.Find(func(m *view.Member) bool { return len(m.Answer.Status.Errors) > 0 })
	if m == nil {
		return nil
	}
	return &status.Problem{Reason: reason.Complaint, Message: fmt.Sprintf("Member %s serves, and says: %s", m.ShownName(ec), status.Shortened(m.Answer.Status.Errors[0])), Retriable: true}
}
