package memcached

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/internal/kit/status"
)

// plan is what is to be done.
type plan struct {
	loop.Plan

	// requested is what the servers are to be.
	requested request
	// change is the server that is changed in place now, if one is, and resize
	// the one whose container is given more memory.
	change *change
	resize *resize
	// evictable is how many servers may be evicted.
	evictable int32
	// serving is the identity that clients are to see.
	serving v1alpha1.Identity
	// upgrade is what status is to say about a change of the servers: nil if
	// there is none. What it names first, the next step carries out.
	upgrade *v1alpha1.UpgradeStatus
	// problem is what keeps an upgrade from going on, and waits is what it
	// waits for: for a restart that takes longer than it may, if overdue.
	problem *status.Problem
	waits   string
	overdue bool
	// note is what else a user is to know of servers that are ready.
	note string
	// wakeAfter is when to look again, if nothing happens; 0 for never.
	wakeAfter time.Duration
}

// wake looks again after a time, unless that is to be sooner anyway.
func (p *plan) wake(after time.Duration) {
	if p.wakeAfter == 0 || after < p.wakeAfter {
		p.wakeAfter = after
	}
}

// change is a server, and what it is to become in place.
type change struct {
	pod      *corev1.Pod
	template podTemplate
	image    string // of the server: what admission makes of the template's
	revision string // the StatefulSet's name for the template, if it is of one
	now      time.Time
}

// decide is the next step: pure, so that the tests need no cluster.
func decide(mc *v1alpha1.Memcached, seen observation) (*plan, error) {
	requested, err := requestOf(mc, seen)
	next := &plan{evictable: 1, requested: requested}
	if err != nil {
		return next, err
	}
	err = steps(seen, next)
	next.problem = cmp.Or(requested.refused, next.problem)
	return next, err
}

// steps adds to the plan what comes next for what is requested.
func steps(seen observation, next *plan) error {
	mc, t, isHeld := next.requested.Memcached, next.requested.template, next.requested.isHeld
	if d := seen.deployment(); isStable(mc) && isOwned(d, mc) && d.Labels[run.ManagedByLabel] != managedBy {
		// Without the label it would not be found again. Its pods stay as they are.
		next.Again = true
		next.Do(loop.Patch{Object: d, Part: "adopt", Why: "Deployment without the label is replaced by a StatefulSet",
			IfSame: true, Metadata: map[string]any{"labels": labels(mc)}})
		return nil
	}
	for _, c := range seen.inputs.stale { // before the pods get them
		if slices.ContainsFunc(roles(mc), func(r role) bool { return r.name == c.role }) {
			next.Do(loop.Apply{Object: c.seen, Want: secretCopy(mc, c.role, c.data), Private: true})
		}
	}
	next.upgrade = plannedUpgrade(mc, seen, t)
	announced := isAnnounced(mc, next.upgrade)
	next.serving = servingIdentity(mc, seen, t)
	next.Do(loop.Apply{Object: loop.The[*corev1.Service](seen.children), Want: service(mc, next.serving)})

	next.note = ignoredLimit(mc, t)
	if words, wait := noRolloutRestart(mc, seen); words != "" {
		next.note += words
		next.wake(wait)
	}
	d, s := seen.deployment(), seen.statefulSet()
	old, other := client.Object(d), client.Object(s)
	if isStable(mc) {
		old, other = s, d
	}
	switch mayApply := announced || next.upgrade == nil || isStable(mc) && isOwned(s, mc); {
	case isHeld || !mayApply:
	case isStable(mc):
		config, err := statefulSet(mc, t, partition(next.upgrade, announced, seen, t))
		if err != nil {
			return err
		}
		next.Do(loop.Apply{Object: old, Want: config})
	default:
		config, err := deployment(mc, t)
		if err != nil {
			return err
		}
		var write loop.Write = loop.Apply{Object: old, Want: config}
		if isForeign(d, mc) {
			if write, err = loop.ReplaceTemplate(d, managedBy, config); err != nil {
				return err
			}
			next.Again = true
		}
		next.Do(write)
	}
	if isOwned(other, mc) && other.GetDeletionTimestamp() == nil && next.serving == mc.Spec.Identity && !isHeld {
		next.Remove(other, loop.NotRequested)
	}
	for _, c := range uselessCopies(mc, seen) {
		next.Remove(c, loop.NotRequested)
	}
	if !isHeld {
		inPlace(mc, seen, t, next)
		countChanged(mc, seen, t, next)
	}
	guardRestarting(seen, next)
	switch b := seen.budget(); {
	case hasBudget(mc):
		next.Do(loop.Apply{Object: b, Want: disruptionBudget(mc, next.evictable)})
	case isOwned(b, mc) && b.DeletionTimestamp == nil:
		next.Remove(b, loop.NotRequested)
	}
	removeUselessPulls(mc, seen, next)
	wakeWhenRecovered(seen, next)
	wakeToRead(seen, next)
	lookForLost(seen, next)
	if err := changePods(seen, next); err != nil {
		return err
	}
	if next.wakeAfter > 0 {
		next.Wake(seen.now.Add(next.wakeAfter))
	}
	return nil
}

// isAnnounced says whether status has announced a cold change, which must not begin
// before. The others need not be announced.
func isAnnounced(mc *v1alpha1.Memcached, planned *v1alpha1.UpgradeStatus) bool {
	if planned == nil || planned.Kind != v1alpha1.Cold {
		return true
	}
	announced := mc.Status.Upgrade
	return announced != nil && announced.Revision == planned.Revision && announced.Kind == v1alpha1.Cold
}

// partition lets the StatefulSet's controller replace pods only for an announced change,
// and then until the change is over. Where that is already under way, it was announced:
// the Memcached in the cache may be an earlier one, and a pod that is made while the
// partition is closed would be one of the old template.
func partition(planned *v1alpha1.UpgradeStatus, announced bool, seen observation, t podTemplate) int32 {
	s := seen.statefulSet()
	rolling := s.Spec.UpdateStrategy.RollingUpdate
	isApplied := s.Annotations[revisionAnnotation] == t.revision
	goesOn := rolling != nil && rolling.Partition != nil && *rolling.Partition == 0 && isApplied
	promoted := s.Status.CurrentRevision == s.Status.UpdateRevision
	switch {
	case stablePods(seen) == 0 && s.UID != "" && s.Status.Replicas == 0 && (!isApplied || !promoted):
		// Nothing can be replaced, and what is made must not be of the old
		// template: that may be why there is nothing.
		goesOn = true
	case planned == nil:
		goesOn = goesOn && (!promoted || s.Status.ObservedGeneration < s.Generation)
	case planned.Kind != v1alpha1.Cold:
		goesOn = goesOn && s.Annotations[openAnnotation] == t.revision
	case announced && !canChangeInPlace(seen, t):
		goesOn = true
	}
	if goesOn {
		return 0
	}
	return partitionClosed
}

// stablePods is how many pods of a StatefulSet are there.
func stablePods(seen observation) int32 {
	var n int32
	for _, pod := range seen.pods {
		if pod.Labels[identityLabel] == string(v1alpha1.StableIdentity) {
			n++
		}
	}
	return n
}

// servingIdentity is the identity that clients are to see: the requested one, once its
// servers are ready, or there are none of the other.
func servingIdentity(mc *v1alpha1.Memcached, seen observation, t podTemplate) v1alpha1.Identity {
	d, s := seen.deployment(), seen.statefulSet()
	switch {
	case isStable(mc) && isOwned(d, mc) && d.DeletionTimestamp == nil && !isComplete(mc, s.Annotations, s.Status.ReadyReplicas, s.Status.ObservedGeneration >= s.Generation, t):
		return v1alpha1.RandomIdentity
	case !isStable(mc) && isOwned(s, mc) && s.DeletionTimestamp == nil && !isComplete(mc, d.Annotations, d.Status.ReadyReplicas, d.Status.ObservedGeneration >= d.Generation, t):
		return v1alpha1.StableIdentity
	}
	return mc.Spec.Identity
}

func isComplete(mc *v1alpha1.Memcached, annotations map[string]string, ready int32, observed bool, t podTemplate) bool {
	return annotations[revisionAnnotation] == t.revision && observed && ready >= *mc.Spec.Size
}

// plannedUpgrade is the change that the servers need: nil if they are as requested, or
// there are none.
func plannedUpgrade(mc *v1alpha1.Memcached, seen observation, t podTemplate) *v1alpha1.UpgradeStatus {
	var updated, outdated, restarting int32
	other := false
	for _, pod := range seen.pods {
		switch {
		case pod.DeletionTimestamp != nil:
		case isUpdated(&pod, t) && isRestarting(&pod, seen.now):
			restarting++
		case isUpdated(&pod, t):
			updated++
		default:
			outdated++
			other = other || pod.Labels[identityLabel] != string(mc.Spec.Identity)
		}
	}
	old, ok := workload(mc, seen)
	foreign := ok && old.GetAnnotations()[revisionAnnotation] == "" // another operator's, under this very Memcached
	announced := mc.Status.Upgrade
	if announced != nil && announced.Revision != t.revision {
		announced = nil
	}
	// One that was begun continues until the last server is available, and the
	// StatefulSet's controller takes the new template for the present one: before, a pod
	// that has to be made again would be one of the old template.
	s := seen.statefulSet()
	begun := announced != nil && (restarting > 0 || announced.Server != "" || isStable(mc) && s.Status.CurrentRevision != s.Status.UpdateRevision)
	takenOver := foreign && *mc.Spec.Size > 0
	if !ok {
		return nil
	}
	if outdated == 0 && !begun && !takenOver {
		return rolloutRestart(mc, seen, t)
	}
	if _, isDeployment := old.(*appsv1.Deployment); takenOver && isDeployment && isStable(mc) {
		other = true // its pods are not in the cache
	}
	kind, why := effect(mc, seen, t, other)
	if announced != nil && !isWorse(kind, announced.Kind) {
		return &v1alpha1.UpgradeStatus{Revision: t.revision, Kind: announced.Kind, Updated: updated, Message: announced.Message}
	}
	return &v1alpha1.UpgradeStatus{
		Revision: t.revision, Kind: kind, Updated: updated,
		Message: fmt.Sprintf("%s: %s", strings.Join(changedFields(seen, t), ", "), why),
	}
}

// workload is the object that the present servers belong to.
func workload(mc *v1alpha1.Memcached, seen observation) (client.Object, bool) {
	d, s := client.Object(seen.deployment()), client.Object(seen.statefulSet())
	if isStable(mc) {
		d, s = s, d
	}
	switch {
	case isOwned(s, mc): // the other identity, until it is gone
		return s, true
	case isOwned(d, mc):
		return d, true
	}
	return nil, false
}

// isUpdated says whether a pod is as the template has it, or is about to be.
func isUpdated(pod *corev1.Pod, t podTemplate) bool {
	return pod.Annotations[revisionAnnotation] == t.revision && !isByHand(pod, t)
}

// canChangeInPlace says whether all pods that are not as the template has them
// can be changed as they run.
func canChangeInPlace(seen observation, t podTemplate) bool {
	for _, pod := range seen.pods {
		if pod.DeletionTimestamp != nil || isUpdated(&pod, t) {
			continue
		}
		if pod.Annotations[replaceAnnotation] != t.Annotations[replaceAnnotation] || !canGrow(seen, &pod, t) {
			return false
		}
	}
	return true
}

// uselessCopies are the copies of Secrets that are not named any more, once no
// pod mounts them.
func uselessCopies(mc *v1alpha1.Memcached, seen observation) []client.Object {
	var useless []client.Object
	for _, c := range seen.copies {
		used := false
		for _, role := range roles(mc) {
			used = used || c.Name == copyName(mc, role.name)
		}
		for _, pod := range seen.pods {
			for _, v := range pod.Spec.Volumes {
				used = used || v.Secret != nil && v.Secret.SecretName == c.Name
			}
		}
		if !used {
			useless = append(useless, &corev1.Secret{ObjectMeta: c.ObjectMeta})
		}
	}
	return useless
}

// isAsApplied says whether the StatefulSet is what was last wanted, and its
// controller has seen that, so that its status is about it.
func isAsApplied(s *appsv1.StatefulSet, t podTemplate) bool {
	rolling := s.Spec.UpdateStrategy.RollingUpdate
	return s.UID != "" && s.DeletionTimestamp == nil && s.Spec.Template.Annotations[revisionAnnotation] == t.revision &&
		s.Status.ObservedGeneration >= s.Generation && s.Status.UpdateRevision != "" &&
		rolling != nil && rolling.Partition != nil && *rolling.Partition == partitionClosed
}
