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
			ok, held := mayChange(seen, named, t, next)
			if ok && hasRoom(named, t, next) && isGuarded(mc, seen, named, next) {
				next.change = &change{named, t, pulledAs(seen, named.Spec.NodeName, t.server().Image), revisionOf(mc, seen), seen.now}
			}
			if !held {
				return
			}
		case !isAvailable(named, seen.now):
			next.waits, next.overdue = restartOf(named, seen.now, next), isOverdue(named, seen.now, next)
			if !next.overdue {
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
		ok, held := mayChange(seen, pod, t, next)
		if ok {
			next.upgrade.Server = pod.Name
			next.waits = ""
			if hasRoom(pod, t, &plan{}) {
				next.evictable = 0
			}
		}
		if !held {
			return
		}
	}
}

// isGuarded says whether no other server can be evicted while one is restarted:
// Kubernetes sees a server go only when it is gone. While the budget has not
// been seen by its controller, the API server refuses all evictions; those that
// it has let pass before are in its status until the pods are ending. Without a budget of
// the operator's, the user has chosen not to wait.
func isGuarded(mc *v1alpha1.Memcached, seen observation, pod *corev1.Pod, next *plan) bool {
	next.evictable = 0
	if !hasBudget(mc) {
		return true
	}
	b := seen.budget()
	if b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.IntValue() != 0 || b.Status.ObservedGeneration < b.Generation {
		next.waits = fmt.Sprintf("PodDisruptionBudget %s is to keep the other servers from being evicted", b.Name)
		return false
	}
	for _, other := range seen.pods {
		if _, evicted := b.Status.DisruptedPods[other.Name]; evicted && other.Name != pod.Name && other.DeletionTimestamp == nil {
			next.waits = fmt.Sprintf("server %s is being evicted", other.Name)
			return false
		}
	}
	return true
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

// mayChange says whether a server can be restarted without delay: it is not
// being restarted, its image is on its node, and Kubernetes will not hold it
// back.
func mayChange(seen observation, pod *corev1.Pod, t podTemplate, next *plan) (ok, held bool) {
	if isBusy(pod, seen.now, next) {
		next.waits = restartOf(pod, seen.now, next)
		return false, false
	}
	if !restartsServer(pod, t) || pod.Spec.NodeName == "" {
		return true, false
	}
	if requestedImage(pod, serverContainer) != t.server().Image && !isPulled(seen, pod.Spec.NodeName, t.server().Image) {
		next.waits = fmt.Sprintf("image %s is being pulled on node %s", t.server().Image, pod.Spec.NodeName)
		return false, false
	}
	if until := heldUntil(pod, t, seen.now); until.After(seen.now) && isAvailable(pod, seen.now) {
		next.wake(until.Sub(seen.now))
		next.waits = fmt.Sprintf("server %s was restarted lately: Kubernetes would hold back its next start for 10 s or more, until %s",
			pod.Name, until.UTC().Format(time.TimeOnly))
		return false, true
	}
	return true, false
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
