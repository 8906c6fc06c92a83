// Package testkit is what the operators' API-server tests stand on: a real API
// server with the built-in controllers that clean up, a kubelet that only
// pretends, the crash-point sweep, the status checker and the request counter.
//
// # The server
//
// A test binary has one server, started when the first test requests it:
//
//	func TestMain(m *testing.M) { testkit.Main(m, testkit.Options{CRDs: []string{"config/crd"}}) }
//
// It is etcd, kube-apiserver and kube-controller-manager from the folder
// KUBEBUILDER_ASSETS, on loopback. A shell, in a session of its own, holds the
// other end of a pipe; when the pipe closes, because the tests ended or because
// something killed them, it kills the three and removes their folder.
//
// # The crash-point sweep
//
// A [Scenario] says what a user does, what must come of it, and what must never be seen.
// A [Sweep] plays it many times, each time in a namespace of its own with an operator of
// its own, and each time with one thing going wrong:
//
//	n = 1, 2, 3, … until a run ends without an n-th write:
//	    before n: the n-th write is not sent
//	    after n:  the n-th write is sent, its answer is dropped
//	    and from there on nothing that this operator sends or awaits gets
//	    through, watches and deferred code included; its context ends;
//	    a fresh operator starts in its place
//	    wait until the scenario is settled, and until for a while no operator
//	    has sent or received anything
//	    check the invariants
//
// A write is any request that is not a GET; events, leases and access reviews
// are left out, because nothing depends on them. Writes are counted over all
// operators of a run, in the order in which they were sent.
//
// That is done once for every variant: plain; late-all and late-<resource>, where the
// operator gets events a while after the changes, of all kinds or of one only, so that
// its cache is stale when it acts (and where its objects are touched after a write, so
// that it does act); twins, where two operators work at the same time and neither knows
// of the other. The variant faults kills nobody: there the n-th write meets one [Fault],
// such as a conflict, a server that is too busy, or an answer that is lost.
//
// Plain cuts the first write before it, and every write after it, which is also
// before the next. The others share the remaining time of two cores: late-all and
// twins cut every other write, before or after in turns; the late-<resource> do so
// with a write of each that there are of them; of every other write the answer is
// lost, and those between meet the other faults in turns. SWEEP_ALL=1 in the
// environment plays all of it, with both cuts of every write. Of an operator that plays on
// the simulation (package sim) only plain is left without it: what can be late, lost or
// doubled is a seed's choice there, in millions of histories.
//
// While a scenario plays, every version of every object of the listed kinds is
// put to [CheckConditions] and [CheckTransition]: a status that was a lie for
// a millisecond fails the run.
//
// # Every write
//
// A sweep proves nothing about writes that its scenarios never make. So coverage is
// counted by the operator's own names of its writes and the verbs of their requests,
// see [Write.Sort], and [Sweep.RequireAllWritesCut] fails for every write of
// [Sweep.Writes] that no scenario makes, for every sort that was not cut both before
// and after, and for a write that is not in the list. Which write is the n-th depends
// on how fast the machine is, so a sort that a run made, and that was never cut, is
// cut in one more run, by its name and not by its number.
//
// Where tests are drawn for a landing (package draw), each scenario is played with a
// part of its cuts, and what was never cut by any of them is a failure elsewhere: where
// all are made.
package testkit
