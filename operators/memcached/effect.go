package memcached

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
)

// This file is about what a change does to the caches. The servers may have different
// images and settings, after edits in the middle of a change for example, so each one is
// asked, and the worst is announced.

// effect is what a change does to the caches, and the words for it. other says that
// servers of the other identity are to go.
func effect(mc *v1alpha1.Memcached, seen observation, t podTemplate, other bool) (v1alpha1.UpgradeKind, string) {
	inPlace := goesInPlace(mc, seen, t)
	var emptied []string
	var to string
	restarts, grows := 0, false
	for _, pod := range toChange(seen, t) {
		if restartsServer(pod, t) {
			restarts++
		}
		if effectOn(mc, seen, pod, t) == v1alpha1.Cold {
			to = versionFor(seen, pod.Spec.NodeName, t)
			emptied = append(emptied, pod.Name)
		}
		grows = grows || pod.Annotations[memoryAnnotation] != t.Annotations[memoryAnnotation]
	}
	switch {
	case other:
		return v1alpha1.Cold, "new servers start, with empty caches, and then the old ones go"
	case !inPlace:
		return v1alpha1.Cold, "the servers are replaced one after the other, and each starts with an empty cache"
	case len(emptied) > 0 && !isWarm(mc):
		return v1alpha1.Cold, "the servers of which the image was changed by hand are restarted one after the other, and each starts with an empty cache"
	case len(emptied) > 0:
		which, others := "each starts with an empty cache", ""
		if len(emptied) < restarts {
			which, others = startsEmpty(emptied), "; the others keep theirs"
		}
		return v1alpha1.Cold, fmt.Sprintf("the servers are restarted one after the other, and %s, because memcached %s cannot read what one of 1.6.25 or newer has left%s",
			which, to, others)
	case restarts > 0:
		return v1alpha1.Warm, "the servers are restarted one after the other, each with its cache"
	case grows:
		return v1alpha1.Untouched, "the servers get more memory while they run"
	}
	return v1alpha1.Untouched, "memcached is not restarted"
}

// startsEmpty names servers, or some of many.
func startsEmpty(names []string) string {
	const named = 3
	if len(names) == 1 {
		return names[0] + " starts with an empty cache"
	}
	words := strings.Join(names[:min(len(names), named)], ", ")
	if more := len(names) - named; more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	return words + " start with empty caches"
}

// effectOn is what a change in place does to the cache of a server that it has not got to.
// The list is the specification.
func effectOn(mc *v1alpha1.Memcached, seen observation, pod *corev1.Pod, t podTemplate) v1alpha1.UpgradeKind {
	from, to := requestedImage(pod, serverContainer), t.server().Image
	switch {
	case !restartsServer(pod, t):
		return v1alpha1.Untouched
	case !isWarm(mc):
		return v1alpha1.Cold
	case from != to && !keepsCache(versionOf(from), versionFor(seen, pod.Spec.NodeName, t)):
		return v1alpha1.Cold
	}
	return v1alpha1.Warm
}

// isWorse says whether a kind of change does more to the cache than another one.
func isWorse(kind, than v1alpha1.UpgradeKind) bool {
	order := []v1alpha1.UpgradeKind{v1alpha1.Untouched, v1alpha1.Warm, v1alpha1.Cold}
	return slices.Index(order, kind) > slices.Index(order, than)
}

// versionFor is the version of the template's image: what its tag says or else what memcached
// itself said when the image was pulled, on this node if it was.
func versionFor(seen observation, node string, t podTemplate) string {
	image := t.server().Image
	return cmp.Or(versionOf(image), pulledVersion(seen.pulls, image, node), pulledVersion(seen.pulls, image, ""))
}

// toChange are the servers that a change has not got to.
func toChange(seen observation, t podTemplate) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range seen.pods {
		if pod := &seen.pods[i]; pod.DeletionTimestamp == nil && !isUpdated(pod, t) {
			all = append(all, pod)
		}
	}
	return all
}

// goesInPlace says whether the change is one of running pods.
func goesInPlace(mc *v1alpha1.Memcached, seen observation, t podTemplate) bool {
	return onlyByHand(seen, t) || isStable(mc) && canChangeInPlace(seen, t)
}

// kept are the names of the servers that a change has not got to and that keep their
// items, also where it is cold for others.
func kept(mc *v1alpha1.Memcached, seen observation, t podTemplate) (names []string) {
	if !goesInPlace(mc, seen, t) {
		return nil
	}
	for _, pod := range toChange(seen, t) {
		if effectOn(mc, seen, pod, t) != v1alpha1.Cold {
			names = append(names, pod.Name)
		}
	}
	return names
}

// yetToLose is how many servers have yet to lose their items in a cold change. Once one has
// lost them that was to keep them, all may.
func yetToLose(mc *v1alpha1.Memcached, seen observation, t podTemplate) int32 {
	n := mc.Status.Replicas - mc.Status.Upgrade.Updated
	if !slices.ContainsFunc(seen.pods, func(p corev1.Pod) bool { return isUpdated(&p, t) && lostCache(&p) != "" }) {
		n -= int32(len(kept(mc, seen, t)))
	}
	return max(0, n)
}

// restartsServer says whether the change restarts memcached.
func restartsServer(pod *corev1.Pod, t podTemplate) bool {
	return requestedImage(pod, serverContainer) != t.server().Image || changesSettings(pod, t)
}

func changesSettings(pod *corev1.Pod, t podTemplate) bool {
	return pod.Annotations[settingsAnnotation] != t.Annotations[settingsAnnotation]
}
