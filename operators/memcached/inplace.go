package memcached

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/status"
)

// This file decides the steps of a change in place; doc.go has the order.

const (
	// replacedAnnotation of a pod has the containers that a change in place
	// ends: until they are gone, the server has not been restarted.
	replacedAnnotation = "memcached-operator/replaced"
	// secretsAnnotation of a pod has the hash of the Secrets that it was told
	// of. Any change of a pod makes its kubelet look at its volumes at once.
	secretsAnnotation = "memcached-operator/secrets"

	// pullPause is for how long a pull that has failed for good stays, so that
	// it can be looked at, until it is tried again.
	pullPause = 30 * time.Second
	// endedAnnotation of a pod has when its server was last made to end by
	// itself, for other settings.
	endedAnnotation = "memcached-operator/ended"
	// backOffLasts is for how long Kubernetes remembers that a container ended
	// by itself, and holds back its next start.
	backOffLasts = 10*time.Minute + 30*time.Second
	// restartLasts is for how long a server that was made to end by itself is
	// waited for: it sees other settings within two minutes. One that still runs
	// has them already: they were changed and changed back before it looked.
	restartLasts = 5 * time.Minute
	// startLasts is for how long a server that was restarted is let alone to
	// get ready. It reads in 1 GiB in half a second.
	startLasts = 30 * time.Second
)

// inPlace adds to the plan what a change in place needs next.
func inPlace(mc *v1alpha1.Memcached, seen observation, t podTemplate, next *plan) {
	if next.upgrade == nil || !isTold(mc, next.upgrade) || !isAsApplied(seen.statefulSet(), t) || !canChangeInPlace(seen, t) {
		return
	}
	var live, outdated []*corev1.Pod
	var away []string
	for i := range seen.pods {
		pod := &seen.pods[i]
		if !isSettled(pod, seen.now) {
			away = append(away, pod.Name)
		}
		if isRestarting(pod, seen.now) {
			next.wake(restartLasts)
		}
		if pod.DeletionTimestamp != nil || pod.Labels[identityLabel] != string(v1alpha1.StableIdentity) {
			continue
		}
		live = append(live, pod)
		if !isUpdated(pod, t) {
			outdated = append(outdated, pod)
		}
	}
	for range int(*mc.Spec.Size) - len(seen.pods) {
		away = append(away, "one that does not exist")
	}
	pull(mc, seen, t, outdated, next)

	// The one that status names comes first, until it is back.
	if named := namedServer(mc, t, live); named != nil {
		next.upgrade.Server = named.Name
		switch {
		case !isUpdated(named, t):
			others := slices.DeleteFunc(slices.Clone(away), func(name string) bool { return name == named.Name })
			if isSettled(named, seen.now) && len(others) > 0 {
				next.waits = fmt.Sprintf("servers are away: %s", strings.Join(others, ", "))
			} else if mayChange(seen, named, t, next) && hasRoom(named, t, next) {
				next.change = &change{named, t, seen.statefulSet().Status.UpdateRevision, seen.now}
			}
			return
		case !isSettled(named, seen.now):
			next.waits = fmt.Sprintf("server %s is restarting", named.Name)
			return
		}
		next.upgrade.Server = ""
	}
	// Then one that is away anyway, which takes no further one away; then, if
	// all are there, the highest.
	highestFirst := func(a, b *corev1.Pod) int { return ordinal(b) - ordinal(a) }
	slices.SortFunc(outdated, highestFirst)
	for _, pod := range outdated {
		switch {
		case len(away) > 0 && isSettled(pod, seen.now):
			next.waits = fmt.Sprintf("servers are away: %s", strings.Join(away, ", "))
		case mayChange(seen, pod, t, next):
			next.upgrade.Server = pod.Name
			next.waits = ""
			return
		default:
			return
		}
	}
}

// namedServer is the server that status names for this very change.
func namedServer(mc *v1alpha1.Memcached, t podTemplate, live []*corev1.Pod) *corev1.Pod {
	told := mc.Status.Upgrade
	if told == nil || told.Revision != t.revision || told.Server == "" {
		return nil
	}
	for _, pod := range live {
		if pod.Name == told.Server {
			return pod
		}
	}
	return nil
}

// isSettled says whether a server is there, and no restart of it is under way.
func isSettled(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp == nil && !isRestarting(pod, now) && isReady(pod)
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// isRestarting says whether a change in place has not yet ended what it ends.
// The pod's status alone does not tell: until its kubelet gets to it, it is that
// of before the change.
func isRestarting(pod *corev1.Pod, now time.Time) bool {
	if pod.Annotations[replacedAnnotation] == "" {
		return false
	}
	if pod.Status.ObservedGeneration != 0 && pod.Status.ObservedGeneration < pod.Generation {
		return true
	}
	return len(yetToEnd(pod, now)) > 0
}

// yetToEnd are the containers that the last change of a pod in place is to end,
// and has not.
func yetToEnd(pod *corev1.Pod, now time.Time) []corev1.ContainerStatus {
	if asked, err := time.Parse(time.RFC3339, pod.Annotations[endedAnnotation]); err == nil && !now.Before(asked.Add(restartLasts)) {
		return nil
	}
	replaced := strings.Split(pod.Annotations[replacedAnnotation], ",")
	return slices.DeleteFunc(slices.Clone(pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.ContainerID == "" || !slices.Contains(replaced, c.ContainerID)
	})
}

// isBusy says whether a server is in the middle of a restart: ended once more,
// it may lose the items that it leaves or reads in, and what it has not seen
// yet may never be. A container that does not run has nothing to lose, and a
// change may be what it needs.
func isBusy(pod *corev1.Pod, now time.Time, next *plan) bool {
	if slices.ContainsFunc(yetToEnd(pod, now), func(c corev1.ContainerStatus) bool {
		return c.State.Waiting == nil && c.State.Terminated == nil
	}) {
		return true
	}
	if pod.Annotations[replacedAnnotation] == "" || isReady(pod) {
		return false
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == serverContainer && c.State.Running != nil {
			wait := c.State.Running.StartedAt.Add(startLasts).Sub(now)
			if wait > 0 {
				next.wake(wait)
			}
			return wait > 0
		}
	}
	return false
}

// mayChange says whether a server can be restarted without delay: it is not
// being restarted, its image is on its node, and Kubernetes will not hold it
// back.
func mayChange(seen observation, pod *corev1.Pod, t podTemplate, next *plan) bool {
	if isBusy(pod, seen.now, next) {
		next.waits = fmt.Sprintf("server %s is restarting", pod.Name)
		return false
	}
	if !restartsServer(pod, t) || pod.Spec.NodeName == "" {
		return true
	}
	if container(&pod.Spec, serverContainer).Image != t.server().Image {
		for _, p := range seen.pulls {
			if p.Spec.NodeName == pod.Spec.NodeName && p.Spec.Containers[0].Image == t.server().Image && p.Status.Phase == corev1.PodSucceeded {
				return true
			}
		}
		next.waits = fmt.Sprintf("image %s is being pulled on node %s", t.server().Image, pod.Spec.NodeName)
		return false
	}
	// Only settings: the container ends by itself, which Kubernetes answers at
	// once the first time, and later ever more slowly.
	if until := lastEnd(pod).Add(backOffLasts); until.After(seen.now) && isSettled(pod, seen.now) {
		next.wake(until.Sub(seen.now))
		next.waits = fmt.Sprintf("server %s has ended by itself lately: Kubernetes would hold back its next start for 10 s or more, until %s",
			pod.Name, until.UTC().Format(time.TimeOnly))
		return false
	}
	return true
}

// lastEnd is when the server last ended by itself, be it that it was made to or
// that it crashed. An end that the kubelet brought about does not count.
func lastEnd(pod *corev1.Pod) time.Time {
	last, err := time.Parse(time.RFC3339, pod.Annotations[endedAnnotation])
	if err != nil {
		last = time.Time{}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if end := c.LastTerminationState.Terminated; c.Name == serverContainer && end != nil && end.ExitCode != 0 && end.FinishedAt.After(last) {
			last = end.FinishedAt.Time
		}
	}
	return last
}

// pull adds the pods that pull the image on every node that it will be needed
// on, and what is wrong with those that are there.
func pull(mc *v1alpha1.Memcached, seen observation, t podTemplate, outdated []*corev1.Pod, next *plan) {
	asked := map[string]bool{}
	for _, pod := range outdated {
		node := pod.Spec.NodeName
		if node == "" || asked[node] || container(&pod.Spec, serverContainer).Image == t.server().Image {
			continue
		}
		asked[node] = true
		i := slices.IndexFunc(seen.pulls, func(p corev1.Pod) bool { return p.Name == pullName(mc, node, t.server().Image) })
		switch {
		case i < 0:
			next.pulls = append(next.pulls, pullPod(mc, node, t))
			next.trouble = firstOf(next.trouble, lastTrouble(mc, t.server().Image, node))
		case next.trouble == nil:
			next.trouble = pullTrouble(&seen.pulls[i], seen.now, next)
			if next.trouble == nil && seen.pulls[i].Status.Phase != corev1.PodSucceeded {
				next.trouble = lastTrouble(mc, t.server().Image, node)
			}
		}
	}
}

// pullTrouble is what is wrong with a pull, if something is.
func pullTrouble(pod *corev1.Pod, now time.Time, next *plan) *problem {
	image, node := pod.Spec.Containers[0].Image, pod.Spec.NodeName
	p := &problem{reason: reasonPullFailed, passes: true}
	if pod.Status.Phase == corev1.PodFailed {
		if wait := pod.CreationTimestamp.Add(pullPause).Sub(now); wait > 0 {
			next.wake(wait)
		} else {
			next.unwanted = append(next.unwanted, pod)
		}
		why := pod.Status.Message
		for _, c := range pod.Status.ContainerStatuses {
			if end := c.State.Terminated; end != nil && why == "" {
				why = strings.TrimSpace(fmt.Sprintf("exit code %d %s", end.ExitCode, end.Message))
			}
		}
		p.message = doesNotStart(image, node) + status.Shortened(why)
		return p
	}
	for _, c := range pod.Status.ContainerStatuses {
		wait := c.State.Waiting
		if wait == nil {
			continue
		}
		switch wait.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
			p.message = fmt.Sprintf("image %s cannot be pulled on node %s", image, node)
			return p
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			p.message = fmt.Sprintf("image %s does not start on node %s: %s", image, node, status.Shortened(wait.Message))
			return p
		}
	}
	return nil
}

func doesNotStart(image, node string) string {
	return fmt.Sprintf("image %s does not start on node %s (it needs memcached and /bin/sh): ", image, node)
}

// lastTrouble is what status tells of a pull that has failed for good. It holds
// while it is tried again, so that status does not change with every try.
func lastTrouble(mc *v1alpha1.Memcached, image, node string) *problem {
	ready := meta.FindStatusCondition(mc.Status.Conditions, status.Ready)
	if ready == nil || ready.Reason != reasonPullFailed || !strings.HasPrefix(ready.Message, doesNotStart(image, node)) {
		return nil
	}
	return &problem{reason: reasonPullFailed, message: ready.Message, passes: true}
}

// uselessPulls are the pulls that no server waits for any more.
func uselessPulls(seen observation, next *plan) []client.Object {
	var useless []client.Object
	for i := range seen.pulls {
		pod := &seen.pulls[i]
		if pod.DeletionTimestamp != nil || slices.ContainsFunc(next.unwanted, func(o client.Object) bool { return o == client.Object(pod) }) {
			continue
		}
		if next.upgrade == nil || pod.Annotations[revisionAnnotation] != next.upgrade.Revision {
			useless = append(useless, pod)
		}
	}
	return useless
}

// ordinal is the number at the end of a server's name.
func ordinal(pod *corev1.Pod) int {
	n := 0
	if i := strings.LastIndex(pod.Name, "-"); i >= 0 {
		_, _ = fmt.Sscanf(pod.Name[i+1:], "%d", &n) // 0 where there is none
	}
	return n
}

// changed is a strategic merge patch that makes a running pod what its template
// is, and whose it is. It is refused when the pod has changed since it was seen.
func (c change) changed() map[string]any {
	annotations := map[string]any{}
	for name, value := range c.template.Annotations {
		if c.pod.Annotations[name] != value {
			annotations[name] = value
		}
	}
	var containers []any
	var replaced []string
	for _, want := range c.template.Spec.Containers {
		have := container(&c.pod.Spec, want.Name)
		image := have.Image != want.Image
		if image {
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
	switch isImage := container(&c.pod.Spec, serverContainer).Image != c.template.server().Image; {
	case !isImage && changesSettings(c.pod, c.template):
		annotations[endedAnnotation] = c.now.UTC().Format(time.RFC3339)
	case isImage && c.pod.Annotations[endedAnnotation] != "":
		annotations[endedAnnotation] = nil // the kubelet ends it, and holds nothing back
	}
	patch := map[string]any{"metadata": map[string]any{
		"uid": c.pod.UID, "resourceVersion": c.pod.ResourceVersion, "annotations": annotations,
		"labels": map[string]any{revisionLabel: c.revision},
	}}
	if len(containers) > 0 {
		patch["spec"] = map[string]any{"containers": containers}
	}
	return patch
}

// revisionLabel is the label by which a StatefulSet knows which
// template a pod is of.
const revisionLabel = "controller-revision-hash"
