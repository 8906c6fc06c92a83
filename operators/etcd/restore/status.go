package restore

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/objects"
)

// The reasons in status and in events. Those of a restore that failed are from where it failed.
const (
	reasonComplete  = "Complete"
	reasonNoCluster = "ClusterNotFound"
	reasonGone      = "ClusterGone"
	reasonPaused    = "ClusterPaused"
	reasonAnother   = "AnotherRestore"
	reasonWaiting   = "Waiting"
	reasonFailed    = "Failed"
)

// summarize is the status of an EtcdRestore, as that of its EtcdCluster is.
func summarize(er *v1beta2.EtcdRestore, seen observation) v1beta2.RestoreStatus {
	st := *er.Status.DeepCopy()
	st.ObservedGeneration = er.Generation
	conditions := status.Conditions{List: &st.Conditions, Generation: er.Generation}
	if ec := seen.cluster; ec != nil && st.EtcdClusterUID == "" && ec.DeletionTimestamp == nil {
		st.EtcdClusterUID = ec.UID
	}
	switch id, ec := string(er.UID), seen.cluster; {
	case isDone(er):
		tellEnd(&st, conditions)
	case seen.isGone(er):
		end(&st, &v1beta2.Restored{
			FailureMessage: fmt.Sprintf("%s: EtcdCluster %q, of which this restore was, is gone", reasonGone, er.Spec.EtcdCluster.Name),
			Key:            st.Key, Revision: st.Revision, LostRevision: st.LostRevision, ClusterID: st.ClusterID, Time: &metav1.Time{Time: seen.now.Truncate(time.Second)},
		})
		tellEnd(&st, conditions)
	case ec == nil:
		st.Phase = v1beta2.RestoreWaiting
		conditions.MarkStalled(reasonNoCluster, fmt.Sprintf("There is no EtcdCluster %q in namespace %q: create it, and it begins with the backup", er.Spec.EtcdCluster.Name, er.Namespace))
	case ec.Status.Restoring != nil && ec.Status.Restoring.ID == id:
		follow(&st, conditions, ec)
	case ec.Status.Restored != nil && ec.Status.Restored.ID == id:
		end(&st, ec.Status.Restored)
		tellEnd(&st, conditions)
	default:
		st.Phase = v1beta2.RestoreWaiting
		await(conditions, ec)
	}
	return st
}

// await says what a restore that has not begun waits for.
func await(conditions status.Conditions, ec *v1beta2.EtcdCluster) {
	switch other := ec.Status.Restoring; {
	case ec.DeletionTimestamp != nil:
		conditions.MarkReconciling(reasonWaiting, fmt.Sprintf("Waiting for EtcdCluster %q, which is being deleted, to be gone", ec.Name))
	case ec.Spec.Paused:
		conditions.MarkStalled(reasonPaused, fmt.Sprintf("EtcdCluster %q is paused: nothing of it is changed until its spec.paused is false", ec.Name))
	case other != nil && other.Name != "":
		conditions.MarkReconciling(reasonAnother, fmt.Sprintf("Waiting for EtcdRestore %q, which is under way", other.Name))
	case other != nil:
		conditions.MarkReconciling(reasonAnother, fmt.Sprintf("Waiting for EtcdCluster %q to be restored from its spec.recoverFrom", ec.Name))
	default:
		conditions.MarkReconciling(reasonWaiting, fmt.Sprintf("Waiting for EtcdCluster %q to begin", ec.Name))
	}
}

// follow says how far the restore is.
func follow(st *v1beta2.RestoreStatus, conditions status.Conditions, ec *v1beta2.EtcdCluster) {
	r := ec.Status.Restoring
	st.Phase, st.Key, st.Revision, st.RevisionOffset, st.LostRevision, st.ClusterID, st.StartTime = r.Phase, r.Key, r.Revision, r.RevisionOffset, r.LostRevision, r.ClusterID, r.StartTime
	message := map[v1beta2.RestorePhase]string{
		v1beta2.RestoreVerifying:  fmt.Sprintf("Member %q of EtcdCluster %q reads and checks the backup; the cluster goes on as it is", r.Seed, ec.Name),
		v1beta2.RestoreSwitching:  fmt.Sprintf("EtcdCluster %q is switched to member %q, which serves revision %d", ec.Name, r.Seed, r.Revision),
		v1beta2.RestoreCompleting: fmt.Sprintf("EtcdCluster %q serves revision %d; members are added to %q", ec.Name, r.Revision, r.Seed),
	}[r.Phase]
	if r.Problem != "" {
		message += ". " + r.Problem
	}
	if ec.Spec.Paused {
		what := "nothing of it is changed"
		if objects.StopsMembers(r) && meta.IsStatusConditionFalse(ec.Status.Conditions, v1beta2.ConditionAvailable) {
			what = "its members are stopped, and nothing serves"
		}
		conditions.MarkStalled(reasonPaused, fmt.Sprintf("%s. The EtcdCluster is paused: %s until its spec.paused is false", message, what))
		return
	}
	conditions.MarkReconciling(string(r.Phase), message)
}

// end takes over what became of the restore.
func end(st *v1beta2.RestoreStatus, done *v1beta2.Restored) {
	st.Phase, st.Succeeded, st.Reason = v1beta2.RestoreComplete, true, ""
	if done.FailureMessage != "" {
		st.Phase, st.Succeeded, st.Reason = v1beta2.RestoreFailed, false, done.FailureMessage
	}
	st.Key, st.Revision, st.RevisionOffset, st.LostRevision, st.ClusterID, st.KeptPersistentVolumeClaims = done.Key, done.Revision, done.RevisionOffset, done.LostRevision, done.ClusterID, done.KeptPersistentVolumeClaims
	st.CompletionTime = done.Time
}

// tellEnd has the conditions say what became of it.
func tellEnd(st *v1beta2.RestoreStatus, conditions status.Conditions) {
	if st.Phase == v1beta2.RestoreComplete {
		message := fmt.Sprintf("The cluster was restored from %s, of revision %d", st.Key, st.Revision)
		if st.RevisionOffset > 0 {
			message += fmt.Sprintf(", and goes on from revision %d", st.Revision+st.RevisionOffset)
		}
		if st.LostRevision > st.Revision {
			message += fmt.Sprintf("; the last revision known of the cluster before is %d", st.LostRevision)
		}
		if len(st.KeptPersistentVolumeClaims) > 0 {
			message += "; these PersistentVolumeClaims are kept: " + strings.Join(st.KeptPersistentVolumeClaims, ", ")
		}
		conditions.MarkReady(reasonComplete, message)
		return
	}
	reason, message, found := strings.Cut(st.Reason, ": ")
	if !found || !isReason(reason) {
		reason, message = reasonFailed, st.Reason
	}
	conditions.MarkStalled(reason, message+". Nothing is tried again: to restore, create another EtcdRestore")
}

// isReason says whether a condition can have it for its reason.
func isReason(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') }) < 0
}
