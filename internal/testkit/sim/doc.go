// Package sim plays the stories of operators on a simulated cluster, in millions of
// histories: whatever can be late, lost, doubled or reordered is decided by a seed.
//
// # The cluster
//
// A [Server] is an API server in memory. Requests are done one after the other: resource
// versions, UIDs, generations, conflicts and preconditions, patches, server-side apply with
// managed fields, the subresource status, finalizers, scheduling gates; custom resources by
// the schema and the CEL rules of their CRDs. Where the API server has a library for it,
// that is used, with its results remembered (memo.go): the same questions come again in
// every history. What is stored is never changed, so caches share it.
//
// A [Controller] is another part of the cluster: a kubelet, the garbage collector. An
// operator is the shipped one. Its controllers are made of [run.Parts] of the simulation: a
// client whose requests the scheduler carries, and caches that it fills.
//
// # The scheduler
//
// One goroutine plays a history. Who acts is a coroutine that may stop before each of its
// requests; the clock moves when nobody has anything to do:
//
//	until the story has come to its end and the operator writes nothing for a while:
//	    ask whether somebody meddles, and let them
//	    collect who can act: an informer that is behind its log and not held up, a
//	        reconcile that was stopped or is due, a controller that something has
//	        changed for, the user whose next step's time has come
//	    nobody: move the clock to when somebody can
//	    ask whose turn it is, and let them do one thing
//
// Everything that may go one way or another is a [Question]. The answer 0 is what happens on a
// good day, so a history is a story and its [Deviations], of which there are only so many:
// after them all goes well, and the end has to come. That makes a history short to name, to
// play again, and to shrink: deviations are left out as long as it still fails.
//
// # Simulations
//
// A [Simulation] plays the scenarios of package testkit, those that the sweep plays on a
// real API server: without a deviation, with each single one, and with many that are drawn
// from a seed. All versions of all objects are put to the status checker and to the
// operator's invariants.
package sim
