package backup

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/fairlead/api/etcd/v1beta2"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// announce is about a change of status, when it is one to report: a backup that was made, one that was
// proved, and a failure that is another one than the last.
func announce(ctx context.Context, before, after *v1beta2.EtcdBackup) []loop.Event {
	logger := log.FromContext(ctx)
	var events []loop.Event
	was, is := before.Status, after.Status
	if is.LastBackup != nil && (was.LastBackup == nil || was.LastBackup.Number != is.LastBackup.Number) {
		count(is.LastBackup)
		logger.Info("backup made", "key", is.LastBackup.Key, "revision", is.LastBackup.Revision, "size", is.LastBackup.Size)
		events = append(events, loop.Event{Reason: "BackupMade", Action: "Save",
			Note: fmt.Sprintf("Made backup %s of revision %d: %d bytes", is.LastBackup.Key, is.LastBackup.Revision, is.LastBackup.Size)})
	}
	if is.LastProof != nil && (was.LastProof == nil || was.LastProof.Number != is.LastProof.Number) {
		logger.Info("backup proved", "key", is.LastProof.Key, "revision", is.LastProof.Revision)
		events = append(events, loop.Event{Reason: "BackupProved", Action: "Prove",
			Note: fmt.Sprintf("Proved backup %s: an etcd that was started from it serves revision %d", is.LastProof.Key, is.LastProof.Revision)})
	}
	if is.StoredBackups != nil && was.PrunedAfter != is.PrunedAfter {
		logger.Info("backups pruned", "left", *is.StoredBackups, "retained", is.RetainedBackups)
		if is.RetainedBackups > 0 && was.RetainedBackups == 0 {
			events = append(events, loop.Event{Reason: "BackupsRetained", Action: "Prune",
				Note: fmt.Sprintf("Of %d backups, %d are to be removed, but the storage does not delete them yet (retention or hold): they are removed later",
					*is.StoredBackups, is.RetainedBackups)})
		}
	}
	if f := is.LastFailure; f != nil && is.Failures > was.Failures {
		logger.Info("backup failed", "step", f.Step, "reason", f.Reason, "message", f.Message, "failures", is.Failures)
		if old := was.LastFailure; old == nil || old.Reason != f.Reason || old.Step != f.Step {
			events = append(events, loop.Event{Type: corev1.EventTypeWarning, Reason: "BackupFailed", Action: string(f.Step),
				Note: status.Shortened(f.Reason + ": " + f.Message)})
		}
	}
	// What keeps an EtcdBackup from its work and is no failure of a try, such as a Secret that does not exist.
	isStalled := meta.IsStatusConditionTrue(after.Status.Conditions, status.Stalled)
	return append(events, loop.AnnounceReady(ctx, before.Status.Conditions, after.Status.Conditions, "Save", func(ready metav1.Condition) bool {
		isFailure := is.LastFailure != nil && is.LastFailure.Reason == ready.Reason
		return isStalled && !isFailure && ready.Reason != reasonPaused
	})...)
}
