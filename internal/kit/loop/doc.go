// Package loop is the reconcile loop, the same for every kind of every operator.
//
// An operator gives a [Kind]: its children, and functions that observe, decide,
// summarize and report. The loop does the rest. For an object that changed, or
// whose children did, or whose time has come:
//
//	get the object from the cache; if it is gone, forget it
//	wait for the cache if it does not show yet what this process wrote
//	up to five times:
//	    read the children, and observe the rest    (reads only)
//	    decide                                     (pure: writes as values)
//	    carry the writes out, in order
//	    until nothing was otherwise than the cache had it
//	summarize                                      (pure: the status)
//	write the status, if it differs
//	report what changed: events, log lines
//	set the alarm for when to look again
//
// # What goes wrong
//
//   - A conflict (409): another operator, or a user, was faster. The status is not
//     written: the event of their write is on its way.
//   - A child that is there although the cache does not show it: it is read from
//     the API server, and what to do is decided anew, with the child as it is.
//   - A refusal (quota, admission, an invalid object, a name that is taken): status
//     reports it. The same write is not sent again until a wait is over that
//     doubles each time, whatever wakes the loop meanwhile, and it is no error for
//     the log: the status is. A new generation of the object ends the wait.
//   - Any other error of a write: status reports it, and the queue retries.
//   - A read that fails twice in a row: what status reports may be outdated, so
//     Ready and Available become Unknown, with the error.
//
// What admission has made otherwise in a child is no failure. It is left so, and the
// condition Overruled says it, until the child is as wanted or gone.
//
// No error is dropped without a trace: a write is counted with what became of it, and
// whatever else is not returned to the queue is logged. A conflict, or an object that is
// gone, while it is observed is such a case: it is looked at again a second later.
//
// A write that fails does not keep those beside it from being sent; those in
// [Plan.Then] are sent only if all before them were done.
//
// # Names
//
// Every write has a name: its verb, the kind, and for those that change a part of an
// object what that is, such as "apply Deployment" or "patch Pod/restart". It is in the
// context of each request that the write makes, see [NameOf], so that a test knows which
// writes it has seen.
package loop
