// Package backup is the operator of EtcdBackups: snapshots of an etcd cluster in a storage, once or
// again and again.
//
// # The promise
//
//   - A backup that was made is never forgotten: its result is in status before its pod is
//     deleted, and what fails later does not change what is known of it.
//   - At most one pod of an EtcdBackup does something at a time, whatever dies and however many
//     operators there are.
//   - Whatever fails is tried again, until it is done or a user pauses it, and status says why it
//     failed and what to do.
//   - Nothing is removed before a later backup was made and, where that is requested, proved.
//   - An EtcdBackup that has nothing to do makes no request.
//   - No finalizer: owner references delete the pods. What is stored stays.
//
// # The steps
//
// A backup takes up to three steps, each in a pod of its own (package job makes it, package agent is
// what runs in it). The first of these that is due is the next (schedule.go):
//
//	Prove   if spec.verify is Restore, and the last backup was not proved
//	Prune   if spec.backupPolicy keeps a number of backups, or for a time, and those that are
//	        not kept were not removed since the last backup
//	Save    when its time has come: at once, after the interval, or by the schedule
//
// A step that failed waits before it is tried again, unless the spec or a Secret was changed, and while
// it waits it is not in the way of a Save that is due. While the last Save has failed, nothing else is
// done. A proof that finds something wrong with a backup is not tried again: the next backup is made, as
// if the Save had failed.
//
// # How state moves
//
// One try of a step takes these writes, and the order of them is what keeps the promise:
//
//  1. create the pod, behind a scheduling gate, under a name that follows from the EtcdBackup,
//     the step and the number of the try;
//  2. claim it: write step, number and the pod's UID into status.running, under the
//     resourceVersion that was read: there is one claim, however many operators there are;
//  3. remove the scheduling gate of the pod that status names, with a write that has its UID;
//  4. write the result into status, which ends the claim;
//  5. delete the pod.
//
// A pod that is not claimed has never run: it is made of the last version of the spec, or it is
// deleted. A pod that is claimed is never replaced: if it is gone before it has reported, its try
// has failed. One that has not started when the spec changes is deleted, and when it is gone, its try
// ends without a result: what was wrong with it may be what was changed. The next pod is created when all others are gone, except for one that was deleted and
// does not end, because its node is lost: that one has no claim any more, and what it writes counts for
// nothing.
//
// # Times
//
// The interval is from the beginning of a backup to that of the next. status.lastTryTime is what
// it is counted from; a clock that was set back so that this is in the future makes the next one
// due at once. A schedule goes on from the present then.
package backup
