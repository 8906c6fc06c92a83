package memcached

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
)

// This file decides the steps of a change in place; doc.go has the order.

// inPlace adds to the plan what a change in place needs next.
func inPlace(mc *v1alpha1.Memcached, seen observation, t podTemplate, next *plan) {
	if next.upgrade == nil || !isAnnounced(mc, next.upgrade) || !canStepInPlace(mc, seen, t) {
		return
	}
	var live, outdated []*corev1.Pod
	var unavailable []string
	for i := range seen.pods {
		pod := &seen.pods[i]
		if !isAvailable(pod, seen.now) {
			unavailable = append(unavailable, pod.Name)
		}
		if isRestarting(pod, seen.now) {
			next.wake(restartLasts)
		}
		if pod.DeletionTimestamp != nil || pod.Labels[identityLabel] != string(mc.Spec.Identity) {
			continue
		}
		live = append(live, pod)
		if !isUpdated(pod, t) {
			outdated = append(outdated, pod)
		}
	}
	for range int(*mc.Spec.Size) - len(seen.pods) {
		unavailable = append(unavailable, "1 server not created yet")
	}
	pull(mc, seen, t, outdated, next)

	// The one that status names comes first, until it is available again.
	if named := namedServer(mc, t, live); named != nil {
		next.upgrade.Server = named.Name
		switch {
		case !isUpdated(named, t):
			others := slices.DeleteFunc(slices.Clone(unavailable), func(name string) bool { return name == named.Name })
			if isAvailable(named, seen.now) && len(others) > 0 {
				next.waits = fmt.Sprintf("waiting for unavailable servers: %s", strings.Join(others, ", "))
				return
			}
			w, isHeld := beforeChange(seen, named, t)
			next.await(w)
			if w.words == "" {
				next.changeNow(mc, seen, named, t)
			}
			if !isHeld {
				return
			}
		case !isAvailable(named, seen.now):
			restart := restartOf(named, seen.now)
			next.await(wait{restart.words(named, seen.now), restart.after})
			if next.overdue = restart.isOverdue; !next.overdue {
				next.evictable = 0
			}
			return
		case next.upgrade.Kind == v1alpha1.Warm && lostCache(named) != "":
			// That is reported before another server is touched.
			next.upgrade.Kind, next.upgrade.Server = v1alpha1.Cold, ""
			next.upgrade.Message += "; but " + lostCache(named)
			return
		}
		next.upgrade.Server = ""
	}
	// Then one that is unavailable anyway, so that no further one becomes so; then, if
	// all are there, the highest. One whose start Kubernetes would delay waits, and no
	// other one waits for it.
	highestFirst := func(a, b *corev1.Pod) int { return ordinal(b) - ordinal(a) }
	slices.SortFunc(outdated, highestFirst)
	for _, pod := range outdated {
		if len(unavailable) > 0 && isAvailable(pod, seen.now) {
			next.waits = fmt.Sprintf("waiting for unavailable servers: %s", strings.Join(unavailable, ", "))
			continue
		}
		w, isHeld := beforeChange(seen, pod, t)
		next.await(w)
		if w.words == "" {
			next.upgrade.Server = pod.Name
			if hasRoom(seen, pod, t) {
				next.evictable = 0
			}
		}
		if !isHeld {
			return
		}
	}
}

// changeNow changes a server that has room to grow, once no other one can be evicted.
func (p *plan) changeNow(mc *v1alpha1.Memcached, seen observation, pod *corev1.Pod, t podTemplate) {
	if !hasRoom(seen, pod, t) {
		p.grow(pod, t)
		return
	}
	p.evictable = 0
	if p.waits = unguarded(mc, seen, pod); p.waits == "" {
		p.change = &change{pod, t, pulledAs(seen, pod.Spec.NodeName, t.server().Image), revisionOf(mc, seen), seen.now}
	}
}

// unguarded says why another server could still be evicted while one is restarted; empty
// if none can: Kubernetes sees a server go only when it is gone. While the budget has not
// been seen by its controller, the API server refuses all evictions; those that
// it has let pass before are in its status until the pods are ending. Without a budget of
// the operator's, the user has chosen not to wait.
func unguarded(mc *v1alpha1.Memcached, seen observation, pod *corev1.Pod) string {
	if !hasBudget(mc) {
		return ""
	}
	b := seen.budget()
	if b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 0 || b.Status.ObservedGeneration < b.Generation {
		return fmt.Sprintf("PodDisruptionBudget %s is to keep the other servers from being evicted", b.Name)
	}
	for _, other := range seen.pods {
		if _, evicted := b.Status.DisruptedPods[other.Name]; evicted && other.Name != pod.Name && other.DeletionTimestamp == nil {
			return fmt.Sprintf("server %s is being evicted", other.Name)
		}
	}
	return ""
}

// guardRestarting lets no server be evicted while one is in the middle of a restart, also
// one that the present change did not begin.
func guardRestarting(seen observation, next *plan) {
	for i := range seen.pods {
		pod := &seen.pods[i]
		if _, changed := timeIn(pod, changedAnnotation); !changed || pod.DeletionTimestamp != nil || isAvailable(pod, seen.now) {
			continue
		}
		if restart := restartOf(pod, seen.now); !restart.isOverdue {
			next.evictable = 0
			next.await(wait{next.waits, restart.after})
		}
	}
}

// revisionOf is the StatefulSet's name for the template; "" for a Deployment.
func revisionOf(mc *v1alpha1.Memcached, seen observation) string {
	if !isStable(mc) {
		return ""
	}
	return seen.statefulSet().Status.UpdateRevision
}

// namedServer is the server that status names for this very change.
func namedServer(mc *v1alpha1.Memcached, t podTemplate, live []*corev1.Pod) *corev1.Pod {
	announced := mc.Status.Upgrade
	if announced == nil || announced.Revision != t.revision || announced.Server == "" {
		return nil
	}
	for _, pod := range live {
		if pod.Name == announced.Server {
			return pod
		}
	}
	return nil
}

// wait is what a step waits for: in words, empty if for nothing, and after how long to look
// again although nothing happens; 0 for never.
type wait struct {
	words string
	after time.Duration
}

// await takes over what a step waits for.
func (p *plan) await(w wait) {
	p.waits = w.words
	if w.after > 0 {
		p.wake(w.after)
	}
}

// beforeChange is what the restart of a server waits for: that it is not being restarted,
// that its image is on its node, or that Kubernetes does not hold it back. No other server
// waits for one that is held back.
func beforeChange(seen observation, pod *corev1.Pod, t podTemplate) (w wait, isHeld bool) {
	restart, image := restartOf(pod, seen.now), t.server().Image
	w.after = restart.after
	switch until := heldUntil(pod, t, seen.now); {
	case restart.isBusy:
		w.words = restart.words(pod, seen.now)
	case !restartsServer(pod, t) || pod.Spec.NodeName == "":
	case requestedImage(pod, serverContainer) != image && !isPulled(seen, pod.Spec.NodeName, image):
		w.words = fmt.Sprintf("image %s is being pulled on node %s", image, pod.Spec.NodeName)
	case until.After(seen.now) && isAvailable(pod, seen.now):
		return wait{
			fmt.Sprintf("server %s was restarted lately: Kubernetes would hold back its next start for 10 s or more, until %s",
				pod.Name, until.UTC().Format(time.TimeOnly)),
			until.Sub(seen.now),
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

// patch makes a running pod what its template is, and whose it is. It is refused when
// the pod has changed since it was seen.
func (c change) patch() (loop.Patch, error) {
	annotations := map[string]any{}
	metadata := map[string]any{"annotations": annotations}
	p := loop.Patch{
		Object: c.pod, Part: "change", Why: "server changed in place: image " + c.template.server().Image, IfSame: true,
		Metadata: metadata, Done: serverChanges.WithLabelValues().Inc,
	}
	if c.revision != "" {
		metadata["labels"] = map[string]any{revisionLabel: c.revision}
	}
	for name, value := range c.template.Annotations {
		if c.pod.Annotations[name] != value {
			annotations[name] = value
		}
	}
	var containers []any
	var replaced []string
	for _, want := range c.template.Spec.Containers {
		image := requestedImage(c.pod, want.Name) != want.Image
		switch {
		case image && want.Name == serverContainer:
			containers = append(containers, map[string]any{"name": want.Name, "image": c.image})
		case image:
			containers = append(containers, map[string]any{"name": want.Name, "image": want.Image})
		}
		if image || want.Name == serverContainer && changesSettings(c.pod, c.template) {
			for _, s := range c.pod.Status.ContainerStatuses {
				if s.Name == want.Name && s.ContainerID != "" {
					replaced = append(replaced, s.ContainerID)
				}
			}
		}
	}
	annotations[replacedAnnotation] = strings.Join(replaced, ",")
	annotations[changedAnnotation] = c.now.UTC().Format(time.RFC3339)
	starts, err := startsAfter(c)
	switch {
	case err != nil:
		return p, err
	case starts != "":
		annotations[startsAnnotation] = starts
	case c.pod.Annotations[startsAnnotation] != "":
		annotations[startsAnnotation] = nil
	}
	switch isImage := requestedImage(c.pod, serverContainer) != c.template.server().Image; {
	case !isImage && changesSettings(c.pod, c.template):
		annotations[endedAnnotation] = c.now.UTC().Format(time.RFC3339)
	case isImage && c.pod.Annotations[endedAnnotation] != "":
		annotations[endedAnnotation] = nil // the kubelet ends it
	}
	if len(containers) > 0 {
		p.Spec = map[string]any{"containers": containers}
	}
	return p, nil
}

// countChanged has the StatefulSet's controller count servers that were changed before another writer changed the
// template, as kubectl rollout restart does: it would wait for them without an end.
func countChanged(mc *v1alpha1.Memcached, seen observation, t podTemplate, next *plan) {
	s := seen.statefulSet()
	if next.upgrade == nil || !isStable(mc) || !isAsApplied(s, t) {
		return
	}
	for i := range seen.pods {
		pod := &seen.pods[i]
		has := pod.Labels[revisionLabel]
		isOthers := has != "" && has != s.Status.UpdateRevision && pod.Labels[identityLabel] == string(v1alpha1.StableIdentity)
		if isOthers && pod.DeletionTimestamp == nil && isUpdated(pod, t) && isAvailable(pod, seen.now) {
			next.Then = append(next.Then, loop.Patch{
				Object: pod, Part: "change", IfSame: true, Why: "server counted as changed: the template was changed meanwhile",
				Metadata: map[string]any{"labels": map[string]any{revisionLabel: s.Status.UpdateRevision}},
			})
		}
	}
}
