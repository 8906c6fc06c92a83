package pool

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/operators/memcached/objects"
)

// This file is about what a change does to the caches. The servers may have different
// images and settings, after edits in the middle of a change for example, so each one is
// asked, and the worst is announced.

// effect is what a change does to the caches, and the words for it. other says that
// servers of the other identity are to go.
func effect(mc *v1alpha1.Memcached, seen Observation, t objects.PodTemplate, other bool) (v1alpha1.UpgradeKind, string) {
	inPlace := GoesInPlace(mc, seen, t)
	var emptied []string
	var to string
	restarts, grows := 0, false
	for _, pod := range ToChange(seen, t) {
		if RestartsServer(pod, t) {
			restarts++
		}
		if effectOn(mc, seen, pod, t) == v1alpha1.Cold {
			to = versionFor(seen, pod.Spec.NodeName, t)
			emptied = append(emptied, pod.Name)
		}
		grows = grows || pod.Annotations[objects.MemoryAnnotation] != t.Annotations[objects.MemoryAnnotation]
	}
	switch {
	case other:
		return v1alpha1.Cold, "new servers start, with empty caches, and then the old ones go"
	case !inPlace:
		return v1alpha1.Cold, "the servers are replaced one after the other, and each starts with an empty cache"
	case len(emptied) > 0 && !objects.IsWarm(mc):
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
func effectOn(mc *v1alpha1.Memcached, seen Observation, pod *corev1.Pod, t objects.PodTemplate) v1alpha1.UpgradeKind {
	from, to := RequestedImage(pod, objects.ServerContainer), t.Server().Image
	switch {
	case !RestartsServer(pod, t):
		return v1alpha1.Untouched
	case !objects.IsWarm(mc):
		return v1alpha1.Cold
	case from != to && !KeepsCache(VersionOf(from), versionFor(seen, pod.Spec.NodeName, t)):
		return v1alpha1.Cold
	}
	return v1alpha1.Warm
}

// isWorse says whether a kind of change does more to the cache than another one.
func isWorse(kind, than v1alpha1.UpgradeKind) bool {
	order := []v1alpha1.UpgradeKind{v1alpha1.Untouched, v1alpha1.Warm, v1alpha1.Cold}
	return slices.Index(order, kind) > slices.Index(order, than)
}

// ToChange are the servers that a change has not got to.
func ToChange(seen Observation, t objects.PodTemplate) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range seen.Pods {
		if pod := &seen.Pods[i]; pod.DeletionTimestamp == nil && !IsUpdated(pod, t) {
			all = append(all, pod)
		}
	}
	return all
}

// Kept are the names of the servers that a change has not got to and that keep their
// items, also where it is cold for others.
func Kept(mc *v1alpha1.Memcached, seen Observation, t objects.PodTemplate) (names []string) {
	if !GoesInPlace(mc, seen, t) {
		return nil
	}
	for _, pod := range ToChange(seen, t) {
		if effectOn(mc, seen, pod, t) != v1alpha1.Cold {
			names = append(names, pod.Name)
		}
	}
	return names
}

// YetToLose is how many servers have yet to lose their items in a cold change. Once one has
// lost them that was to keep them, all may.
func YetToLose(mc *v1alpha1.Memcached, seen Observation, t objects.PodTemplate) int32 {
	n := mc.Status.Replicas - mc.Status.Upgrade.Updated
	if !slices.ContainsFunc(seen.Pods, func(p corev1.Pod) bool { return IsUpdated(&p, t) && LostCache(&p) != "" }) {
		n -= int32(len(Kept(mc, seen, t)))
	}
	return max(0, n)
}

// RestartsServer says whether the change restarts memcached.
func RestartsServer(pod *corev1.Pod, t objects.PodTemplate) bool {
	return RequestedImage(pod, objects.ServerContainer) != t.Server().Image || ChangesSettings(pod, t)
}

// ChangesSettings says whether a server gets other settings.
func ChangesSettings(pod *corev1.Pod, t objects.PodTemplate) bool {
	return pod.Annotations[objects.SettingsAnnotation] != t.Annotations[objects.SettingsAnnotation]
}
