package backup

import (
	"fmt"
	"slices"
	"strings"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/etcd/job"
	"example.com/fairlead/operators/etcd/task"
)

// The reasons in status and in events that are not those of package job or task.
const (
	reasonComplete        = "Complete"
	reasonScheduled       = "Scheduled"
	reasonSaving          = "Saving"
	reasonProving         = "Proving"
	reasonPruning         = "Pruning"
	reasonPaused          = "Paused"
	reasonWaiting         = "Waiting"
	reasonInvalidSchedule = "InvalidSchedule"
	reasonNoCluster       = "ClusterNotFound"
	reasonClusterNotReady = "ClusterNotReady"
	reasonNoSecret        = "SecretNotFound"
	reasonPodEnding       = "PodEnding"
)

// refutes says whether a failed proof is about the backup: it is not to be relied on, and not proved
// again. Anything else is about the proof.
func refutes(reason string) bool {
	switch reason {
	case task.ReasonProofDiffers, task.ReasonProofNotComparable, task.ReasonNotRestorable,
		task.ReasonObjectNotFound, task.ReasonObjectDamaged, task.ReasonObjectForeign:
		return true
	}
	return false
}

// gone is about a pod that was deleted while its try was under way.
func gone(try *v1beta2.BackupTry) task.Problem {
	return task.Problem{Reason: job.ReasonAgentDied, Message: fmt.Sprintf("Pod %q was deleted before its result was stored", try.Pod), Retriable: true}
}

// lost is about a pod that was deleted, and does not end.
func lost(try *v1beta2.BackupTry) task.Problem {
	return task.Problem{Reason: job.ReasonAgentDied, Message: fmt.Sprintf("Pod %q was deleted and does not end: its node may be lost", try.Pod), Retriable: true}
}

// speechless is about a pod that has reported something else than what it was for.
func speechless(try *v1beta2.BackupTry) task.Problem {
	return task.Problem{Reason: job.ReasonAgentDied, Message: fmt.Sprintf(
		"Pod %q has reported no result of the step %s: its image is of another version than the operator", try.Pod, try.Step), Retriable: true}
}

// absent is about a Secret that a step needs, and that does not exist.
func absent(b *v1beta2.EtcdBackup, seen observation, step v1beta2.BackupStep) *status.Problem {
	storage, field := storageSecret(b)
	i := slices.IndexFunc(seen.absent, func(name string) bool { return name == storage || step == v1beta2.BackupSave })
	if i < 0 {
		return nil
	}
	secret := seen.absent[i]
	switch secret {
	case storage:
	case b.Spec.ClientTLSSecret:
		field = "spec.clientTLSSecret"
	case b.Spec.ClientUserSecret:
		field = "spec.clientUserSecret"
	default:
		return &status.Problem{Reason: reasonNoSecret, Retriable: true, Message: fmt.Sprintf("Waiting for Secret %q of EtcdCluster %q", secret, b.Spec.EtcdCluster)}
	}
	return &status.Problem{Reason: reasonNoSecret, Message: fmt.Sprintf("Secret %q, which %s names, does not exist: create it in namespace %q", secret, field, b.Namespace)}
}

// unready is about the EtcdCluster that a backup is to be made of.
func unready(b *v1beta2.EtcdBackup, seen observation) *status.Problem {
	switch name := b.Spec.EtcdCluster; {
	case name == "":
		return nil
	case seen.cluster == nil:
		return &status.Problem{Reason: reasonNoCluster, Message: fmt.Sprintf("There is no EtcdCluster %q in namespace %q: create it, or name another one in spec.etcdCluster", name, b.Namespace)}
	case seen.cluster.Status.ClusterID == "" || len(endpoints(b, seen)) == 0:
		return &status.Problem{Reason: reasonClusterNotReady, Retriable: true, Message: fmt.Sprintf("Waiting for EtcdCluster %q to be created", name)}
	}
	return nil
}

// unended is a sentence without its full stop, so that more can follow.
func unended(s string) string { return strings.TrimRight(s, ". ") }
