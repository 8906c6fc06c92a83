package change

import (
	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// View is what the steps know besides the Memcached: what was observed, and what follows
// from that.
type View struct {
	pool.Observation
	// template is what the servers are to be. If isHeld, it is not applied.
	template objects.PodTemplate
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

// ViewOf is what follows from an observation for what is requested.
func ViewOf(r pool.Request, seen pool.Observation) *View {
	mc, t := r.Memcached, r.Template
	v := &View{
		Observation: seen, template: t, isHeld: r.IsHeld,
		announced: mc.Status.Upgrade, planned: pool.PlannedUpgrade(mc, seen, t), serving: pool.ServingIdentity(mc, seen, t),
	}
	v.isAnnounced = pool.IsAnnounced(mc, v.planned)
	if v.isHeld || v.planned == nil || !v.isAnnounced || !pool.CanStepInPlace(mc, seen, t) {
		return v
	}
	for i := range seen.Pods {
		pod := &seen.Pods[i]
		if !pool.IsAvailable(pod, seen.Now) {
			v.unavailable = append(v.unavailable, pod.Name)
		}
		if isLive(mc, pod) && !pool.IsUpdated(pod, t) {
			v.outdated = append(v.outdated, pod)
		}
	}
	for range int(*mc.Spec.Size) - len(seen.Pods) {
		v.unavailable = append(v.unavailable, "1 server not created yet")
	}
	v.turn = turnOf(mc, v)
	return v
}
