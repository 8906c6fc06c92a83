package memcached

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/steps"
)

// plan is what a step does and, once all are added up, what is to be done.
type plan struct {
	steps.Step[v1alpha1.MemcachedStatus]

	// requested is what the servers are to be, and upgrade what status is to say about a
	// change of them: nil if there is none. They are of all steps together.
	requested request
	upgrade   *v1alpha1.UpgradeStatus
	// serving is the identity that clients are to see.
	serving v1alpha1.Identity
	// waits is what a change waits for: for a restart that takes longer than it may, if
	// overdue.
	waits   string
	overdue bool
	// note is what else a user is to know of servers that are ready.
	note string
}

// Add adds what the next step does.
func (p *plan) Add(next plan) {
	p.Step.Add(next.Step)
	p.serving = cmp.Or(next.serving, p.serving)
	p.waits = cmp.Or(next.waits, p.waits)
	p.overdue = p.overdue || next.overdue
	p.note += next.note
}

// table has the steps of the package comment.
var table = []func(*v1alpha1.Memcached, *view) plan{
	adopt,
	copySecrets,
	planUpgrade,
	serve,
	explain,
	applyServers,
	removeUnused,
	countChanged,
	restoreLabels,
	reloadSecrets,
	pullImage,
	chooseServer,
	guard,
	growServer,
	changeServer,
	removePulls,
	awaitRecovery,
	awaitMemory,
}

// view is what the steps know besides the Memcached: what was observed, and what follows
// from that.
type view struct {
	observation
	// template is what the servers are to be. If isHeld, it is not applied.
	template podTemplate
	isHeld   bool
	// announced is the change that status has announced, and planned the one that the
	// servers need. isAnnounced says that status has it, or need not have it.
	announced, planned *v1alpha1.UpgradeStatus
	isAnnounced        bool
	// serving is the identity that clients are to see.
	serving v1alpha1.Identity
	// If the servers can be changed in place now: those that are yet to be changed, those that
	// are unavailable, and whose turn it is.
	outdated    []*corev1.Pod
	unavailable []string
	turn        turn
}

// viewOf is what follows from an observation for what is requested.
func viewOf(r request, seen observation) *view {
	mc, t := r.Memcached, r.template
	v := &view{
		observation: seen, template: t, isHeld: r.isHeld,
		announced: mc.Status.Upgrade, planned: plannedUpgrade(mc, seen, t), serving: servingIdentity(mc, seen, t),
	}
	v.isAnnounced = isAnnounced(mc, v.planned)
	if v.isHeld || v.planned == nil || !v.isAnnounced || !canStepInPlace(mc, seen, t) {
		return v
	}
	for i := range seen.pods {
		pod := &seen.pods[i]
		if !isAvailable(pod, seen.now) {
			v.unavailable = append(v.unavailable, pod.Name)
		}
		if isLive(mc, pod) && !isUpdated(pod, t) {
			v.outdated = append(v.outdated, pod)
		}
	}
	for range int(*mc.Spec.Size) - len(seen.pods) {
		v.unavailable = append(v.unavailable, "1 server not created yet")
	}
	v.turn = turnOf(mc, v)
	return v
}

// decide adds up the steps: pure, so that the tests need no cluster.
func decide(mc *v1alpha1.Memcached, seen observation) (*plan, error) {
	next := &plan{}
	var err error
	if next.requested, err = requestOf(mc, seen); err != nil {
		return next, err
	}
	next.Problem = next.requested.refused // before all that steps report
	now := next.requested.DeepCopy()
	now.Status.Upgrade = nil // the steps remember it as it is now; what was announced is in the view
	steps.Take(next, table, now, viewOf(next.requested, seen), &now.Status)
	next.upgrade = now.Status.Upgrade
	if next.WakeAfter > 0 {
		next.Wake(seen.now.Add(next.WakeAfter))
	}
	return next, next.Err
}
