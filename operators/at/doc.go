// Package at is the At operator: it runs a command once, at a given time.
//
// # The promise
//
//   - Never early. The clock that counts is the operator's: an attempt is
//     allowed to run only when that clock, read as wall-clock time, shows the
//     scheduled instant or later.
//   - At most once per attempt, whatever dies and whenever.
//   - Never lost silently: an At that is due while no operator runs is run
//     when one runs again, or MISSED if its starting deadline has passed.
//   - A finished At never runs again, also when its pod is deleted. Deleting
//     and creating an At of the same name is a new run.
//   - A clock that jumps makes a run at most 30 s late, and never early.
//
// # How state moves
//
//	         due             claimed             command ended
//	PENDING ─────► (gated pod) ─────► RUNNING ──────────────► DONE
//	   │                               │  ▲                     │
//	   │ too late                      │  │ try again           ▼
//	   └─────► MISSED                  └──┴──────────────────► FAILED
//
// One attempt takes four writes, and the order of them is what keeps the
// promise:
//
//  1. create the attempt's pod, under a name that follows from the At and the
//     number of the attempt, behind a scheduling gate. The name is a lock:
//     there is one such pod. The gate keeps it from running;
//  2. claim it: write phase RUNNING and the pod's UID into status, under the
//     resourceVersion that was read. Whoever else wrote in between, a user
//     who moved the schedule or a second leader, makes this a conflict;
//  3. remove the scheduling gate of the pod whose UID is in status, with a
//     write that names that UID;
//  4. store the result in status.
//
// A gate is not removed after a deadline: the operator that claimed its pod may have
// died hours ago. The pod is then withdrawn, by three writes: a mark on the pod, under
// the resourceVersion at which it was seen to be gated, with the reason of the result;
// the result in status; and the deletion of the pod. No operator removes the gate of a
// pod with the mark: an update by an older view is a conflict, and the patch tests for
// it. An operator that finds a marked pod that status calls claimed stores the result
// that the mark names, whatever the clock says by then. A further attempt starts when the
// pod of the one before has ended or is gone.
//
// An operator that dies between any two of them leaves a state that the next one reads
// and continues from. A gated pod that is not the claimed one has never run. It is
// deleted where the run was put off, and where the At is of another generation than the
// one that the pod was made from, so that what runs is what the claim found in the spec;
// but only after status has its UID as that of a discarded pod, under the
// resourceVersion that was read: so it cannot be claimed any more, not even by an operator
// whose cache still shows it. A pod that is claimed is never replaced: if it is gone before its result was
// stored, the attempt FAILED with reason ResultUnknown, and no other attempt follows,
// because it may have succeeded. The same holds for a command that ends with exit code 0
// after its pod was deleted: whether it did its work or was stopped, it does not run
// again. The exception is a pod that its node refused on arrival, or pushed aside before
// the command started (hasNotStarted): status takes the claim back, with the pod as a
// discarded one, and the attempt is made again, as another pod of that name. It was no
// attempt, so backoffLimit does not count it. Neither stale caches nor two leaders change
// any of this, because the API server decides both the claim and the gate.
//
// # Marks
//
// The cache shows the pods that have the operator's label, and a pod's owner reference
// says which At to wake. Others may remove either (marks.go). So a pod also has an
// annotation that names its At, and status has the UID of a claimed one. A pod is the
// operator's by two marks, never by one. What is lost is restored under UID and
// resourceVersion; where an admission policy does not let it, the pod is read from the
// API server from time to time.
//
// # Waiting
//
// An At that waits costs no request and no goroutine: the loop's alarms keep
// the next instant of every At in one heap and compare it with the wall
// clock. When many are due together, all pods are created before the first is
// claimed, and all are claimed before the first runs: what comes later has a
// lower priority in the queue, and a pod that runs gives the API server work.
package at
