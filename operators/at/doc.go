// Package at is the At operator: it runs a command once, at a given time.
//
// # The promise
//
//   - Never early. The clock that counts is the operator's: an attempt is
//     allowed to run only when that clock, read as wall-clock time, shows the
//     scheduled instant or later. Of a process that waits, it is its node's.
//   - At most once per attempt, whatever dies and whenever.
//   - Never lost silently: an At that is due while no operator runs is run
//     when one runs again, or MISSED if its starting deadline has passed.
//   - A finished At never runs again, also when its pod is deleted. Deleting
//     and creating an At of the same name is a new run.
//   - A clock that jumps makes a run at most 30 s late, and never early.
//
// # How state moves
//
//	        near             due              claimed             command ended
//	PENDING ────► Prepared ───────► (no gate) ────────► RUNNING ──────────────► DONE
//
//	         due             claimed             command ended
//	PENDING ─────► (gated pod) ─────► RUNNING ──────────────► DONE
//	   │                               │  ▲                     │
//	   │ too late                      │  │ try again           ▼
//	   └─────► MISSED                  └──┴──────────────────► FAILED
//
// A first attempt is prepared if there is time for it, which is the upper line, see below.
// Any other attempt takes four writes, and the order of them is what keeps the promise:
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
// and continues from. A gated pod that is neither claimed nor prepared has never run. It is
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
// # Prepared
//
// An At that waits gets its pod 30 s before it is due, or for the last quarter of a shorter wait
// (leadOf), so that at the instant one write is left. Its first attempt takes five writes, in this order:
//
//  1. create the pod, gated, under the name that is the lock;
//  2. prepare it: write its UID into status.preparedPodUID, under the resourceVersion that
//     was read. The At stays PENDING;
//  3. when it is due, remove the gate of the pod with that UID, after a read from the API
//     server that the At is still the one of the cache (current.go);
//  4. claim it: write phase RUNNING and the pod's UID into status;
//  5. store the result in status.
//
// A user may change the At until the claim is stored, and the gate is removed before that. So
// the pod decides what has become of an attempt, not the clock and not the spec. Without its
// gate, it has begun: it is claimed, and a change that the API server has accepted meanwhile
// has no effect, which status says (ChangedTooLate); nor is such an attempt followed by
// another one, which would be another command's. Behind its gate, it has not begun: if it is
// not to run any more, because the At was changed, suspended, or is too late, it is withdrawn
// by three writes. The first is the mark on the pod, as above, under the resource version at
// which it was seen to be gated: it and the removal of the gate exclude each other, whoever
// makes them and however late their caches are. Status then takes the pod for a discarded
// one, and it is deleted. If a prepared pod is gone without all that, another operator may
// have removed its gate, with a clock that was set back since: the attempt FAILED with reason
// ResultUnknown. If it is seen to go, behind its gate, it has not run, and is made again.
//
// What cannot be prepared, because a quota has no room for example, is no problem before it is
// due: it then takes the other way. So does an At that was created too late, or whose
// operator was not there.
//
// # Process
//
// With prepare: Process the pod of step 1 begins with a program that waits for the instant, and then becomes the
// command (package starter). Step 3 comes at once, lead before the At is due, and step 4 a second after that
// (claimAfter). In between the command begins when the node's clock shows the instant, whatever the operator does, or
// does not. So what decides is how the process ended (neverBegan). As long as it waits, its termination message says
// that the command has not begun: an end with that message was no attempt. With any other, and when the operator's
// clock shows the instant, the command has begun: the pod is claimed, and a change is too late, as without a gate
// above. If the end of a claimed one shows that its command has not begun after all, status takes the claim back, as
// for a pod that its node has refused. An end that proves nothing, of a container that was lost or that was gone before
// its end was seen, is ResultUnknown.
//
// Such a pod is withdrawn by its node: with the mark it gets the shortest deadline, so that the kubelet ends the
// process and the pod stays, to be read, which a deleted one would not. In the last 5 s (lastCall) that is too late,
// because a slow node would end a command that has begun; if it is that slow all the same, status says Withdrawn. A pod
// that has no node yet can be discarded as soon as it has the mark: the mark is in the environment of a process that is
// started later, which then ends at once: a kubelet gets a pod only with its node, and so with the mark.
//
// A process must not cost the run. What keeps the start program from being there ends the preparing, not the run
// (NotPrepared): at its instant the run takes the other way, without the program, as does every further attempt.
//
// # Node
//
// With prepare: Node there is a second pod, the placeholder (placeholder.go): of the same template, without a gate, and
// with the start program in place of all commands. It finds a node and pulls the images, and ends a second before the
// At is due. When the gate of the attempt's pod is removed, the same write has it prefer that node. Nothing depends on
// the placeholder, and no promise is about it: it is made and deleted by steps that have nothing else to do.
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
// lower priority in the queue, and a pod that runs gives the API server work. Of those
// that are prepared, all gates are removed before the first is claimed.
package at
