package change

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// This file has the steps of a change in place; the package comment of package memcached has the order.

// turn is the server that is changed in place now, or is the next to be.
type turn struct {
	// server is the one that status is to name; nil for none.
	server *corev1.Pod
	// isDue says that status has named it, and that it waits for nothing but memory, and
	// that no other one can be evicted.
	isDue bool
	// isGuarded says that no other one may be evicted from now on.
	isGuarded bool
	// lost says why the server that was changed before has lost its cache.
	lost string
	// report is what is waited for, and when to look again.
	report Plan
}

// wait is what a step waits for: in words, empty if for nothing, and after how long to look
// again although nothing happens; 0 for never.
type wait struct {
	words string
	after time.Duration
}

// await takes over what a step waits for.
func (p *Plan) await(w wait) {
	p.Waits = w.words
	p.WakeIn(w.after)
}

// turnOf is whose turn it is: that of the server that status names, until it is available
// again, and then that of the next one.
func turnOf(mc *v1alpha1.Memcached, v *View) (t turn) {
	if slices.ContainsFunc(v.Pods, func(pod corev1.Pod) bool { return pool.IsRestarting(&pod, v.Now) }) {
		t.report.WakeIn(pool.RestartLasts)
	}
	if named := namedServer(mc, v); named == nil || !t.staysWith(v, named) {
		t.goesTo(v)
	}
	return t
}

// namedServer is the server that status names for this very change.
func namedServer(mc *v1alpha1.Memcached, v *View) *corev1.Pod {
	if v.announced == nil || v.announced.Revision != v.template.Revision || v.announced.Server == "" {
		return nil
	}
	for i := range v.Pods {
		if pod := &v.Pods[i]; isLive(mc, pod) && pod.Name == v.announced.Server {
			return pod
		}
	}
	return nil
}

// isLive says whether a pod is to stay, and of the requested identity.
func isLive(mc *v1alpha1.Memcached, pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Labels[objects.IdentityLabel] == string(mc.Spec.Identity)
}

// staysWith says whether it is still the turn of the server that status names.
func (t *turn) staysWith(v *View, named *corev1.Pod) bool {
	switch isThere := pool.IsAvailable(named, v.Now); {
	case !pool.IsUpdated(named, v.template) && isThere && len(v.unavailable) > 0:
		t.report.Waits = v.awaitsOthers()
	case !pool.IsUpdated(named, v.template):
		w, isHeld := beforeChange(v.Observation, named, v.template)
		t.report.await(w)
		if isHeld {
			return false
		}
		t.isDue = w.words == ""
		t.isGuarded = t.isDue && pool.HasRoom(v.Observation, named, v.template)
	case !isThere:
		restart := pool.RestartOf(named, v.Now)
		t.report.await(wait{restart.Words(named, v.Now), restart.After})
		t.report.Overdue, t.isGuarded = restart.IsOverdue, !restart.IsOverdue
	default:
		if v.planned.Kind == v1alpha1.Warm {
			t.lost = pool.LostCache(named)
		}
		return t.lost != "" // that is reported before another server is touched
	}
	t.server = named
	return true
}

// goesTo gives the turn to a server that is unavailable anyway, so that no further one becomes
// so or, if all are available, to the highest. One whose start Kubernetes would delay waits,
// and no other one waits for it.
func (t *turn) goesTo(v *View) {
	highestFirst := func(a, b *corev1.Pod) int { return ordinal(b) - ordinal(a) }
	for _, pod := range slices.SortedFunc(slices.Values(v.outdated), highestFirst) {
		if len(v.unavailable) > 0 && pool.IsAvailable(pod, v.Now) {
			t.report.Waits = v.awaitsOthers()
			continue
		}
		w, isHeld := beforeChange(v.Observation, pod, v.template)
		t.report.await(w)
		if w.words == "" {
			t.server, t.isGuarded = pod, pool.HasRoom(v.Observation, pod, v.template)
		}
		if !isHeld {
			return
		}
	}
}

// awaitsOthers says which servers one that is available waits for.
func (v *View) awaitsOthers() string {
	return "waiting for unavailable servers: " + strings.Join(v.unavailable, ", ")
}

// beforeChange is what the restart of a server waits for: that it is not being restarted,
// that its image is on its node, or that Kubernetes does not hold it back. No other server
// waits for one that is held back.
func beforeChange(seen pool.Observation, pod *corev1.Pod, t objects.PodTemplate) (w wait, isHeld bool) {
	restart, image := pool.RestartOf(pod, seen.Now), t.Server().Image
	w.after = restart.After
	switch until := pool.HeldUntil(pod, t, seen.Now); {
	case restart.IsBusy:
		w.words = restart.Words(pod, seen.Now)
	case !pool.RestartsServer(pod, t) || pod.Spec.NodeName == "":
	case pool.RequestedImage(pod, objects.ServerContainer) != image && !pool.IsPulled(seen, pod.Spec.NodeName, image):
		w.words = fmt.Sprintf("image %s is being pulled on node %s", image, pod.Spec.NodeName)
	case until.After(seen.Now) && pool.IsAvailable(pod, seen.Now):
		return wait{
			fmt.Sprintf("server %s was restarted lately: Kubernetes would hold back its next start for 10 s or more, until %s",
				pod.Name, until.UTC().Format(time.TimeOnly)),
			until.Sub(seen.Now),
		}, true
	}
	return w, false
}

// ordinal is the number at the end of a server's name.
func ordinal(pod *corev1.Pod) int {
	n := 0
	if i := strings.LastIndex(pod.Name, "-"); i >= 0 {
		_, _ = fmt.Sscanf(pod.Name[i+1:], "%d", &n) // 0 where there is none
	}
	return n
}
