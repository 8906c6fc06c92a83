package memcached

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// This file reads off a pod how far a restart of its server is, what became of
// the cache, and whether Kubernetes would hold back the next one.

const (
	// restartLasts is for how long a server that was made to end by itself is
	// waited for: it sees other settings within two minutes.
	restartLasts = 5 * time.Minute
	// startLasts is for how long a server that was restarted is let alone to
	// get ready. It reads in 1 GiB in half a second.
	startLasts = 30 * time.Second

	// backOffLasts is for how long Kubernetes remembers that it started an
	// image again. The first delay doubles with each start, up to the longest.
	backOffLasts                 = 10*time.Minute + 30*time.Second
	firstBackOff, longestBackOff = 10 * time.Second, 5 * time.Minute
)

// isAvailable says whether a server is there and ready, and not being restarted.
func isAvailable(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp == nil && !isRestarting(pod, now) && isReady(pod)
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// isRestarting says whether a change in place has not yet ended what it ends. The pod's
// status alone does not show it: until its kubelet gets to it, it is the status from
// before the change.
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
	if requested, ok := endedBy002(pod); ok && !now.Before(requested.Add(restartLasts)) {
		return nil // it has the settings already
	}
	replaced := strings.Split(pod.Annotations[replacedAnnotation], ",")
	return slices.DeleteFunc(slices.Clone(pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.ContainerID == "" || !slices.Contains(replaced, c.ContainerID)
	})
}

// timeIn reads a time from an annotation.
func timeIn(pod *corev1.Pod, name string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, pod.Annotations[name])
	return at, err == nil
}

// isBusy says whether a server is in the middle of a restart: ended once more,
// it may lose the items that it leaves or reads in, and what it has not seen
// yet may never be. A container that does not run, and is not about to, has
// nothing to lose, and a change may be what it needs.
func isBusy(pod *corev1.Pod, now time.Time, next *plan) bool {
	if pod.Annotations[replacedAnnotation] == "" || isOverdue(pod, now, next) {
		return false
	}
	until := func(at time.Time) bool {
		wait := at.Add(startLasts).Sub(now)
		if wait > 0 {
			next.wake(wait)
		}
		return wait > 0
	}
	for _, c := range yetToEnd(pod, now) {
		switch {
		case c.State.Terminated != nil:
			if until(c.State.Terminated.FinishedAt.Time) {
				return true
			}
		case c.State.Waiting == nil || c.State.Waiting.Reason == "ContainerCreating":
			return true
		}
	}
	if running := serverStatus(pod).State.Running; running != nil && !isReady(pod) {
		return until(running.StartedAt.Time)
	}
	return false
}

func serverStatus(pod *corev1.Pod) corev1.ContainerStatus {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == serverContainer {
			return c
		}
	}
	return corev1.ContainerStatus{}
}

// isOverdue says whether a restart takes longer than it may. A change of the
// image ends the container when its time to stop is up, whatever it does.
func isOverdue(pod *corev1.Pod, now time.Time, next *plan) bool {
	changed, ok := timeIn(pod, changedAnnotation)
	if !ok {
		return false
	}
	lasts := stopsWithin(pod) + 2*startLasts
	if pod.Annotations[endedAnnotation] != "" {
		lasts = restartLasts
	}
	if wait := changed.Add(lasts).Sub(now); wait > 0 {
		if !isAvailable(pod, now) {
			next.wake(wait)
		}
		return false
	}
	return !isAvailable(pod, now)
}

// stopsWithin is how long a pod has to stop.
func stopsWithin(pod *corev1.Pod) time.Duration {
	seconds := int64(stopSeconds)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		seconds = *s
	}
	return time.Duration(seconds) * time.Second
}

// restartOf says how far the restart of a server is.
func restartOf(pod *corev1.Pod, now time.Time, next *plan) string {
	if pod.DeletionTimestamp != nil || !isOverdue(pod, now, next) {
		return fmt.Sprintf("server %s is restarting", pod.Name)
	}
	changed, _ := timeIn(pod, changedAnnotation)
	at := changed.UTC().Format(time.TimeOnly)
	if len(yetToEnd(pod, now)) > 0 {
		return fmt.Sprintf("server %s was to restart at %s, and has not stopped: it hangs, or memcached in its image ignores SIGUSR1. kubectl delete pod %s starts it anew, with an empty cache", pod.Name, at, pod.Name)
	}
	return fmt.Sprintf("server %s was restarted at %s, and is not ready: kubectl logs %s -c %s may say why", pod.Name, at, pod.Name, serverContainer)
}

// lostCache says why a server that was to be restarted with its cache has started without
// it. One that leaves its cache ends by itself, with exit code 0.
func lostCache(pod *corev1.Pod) string {
	end := serverStatus(pod).LastTerminationState.Terminated
	if end == nil || !slices.Contains(strings.Split(pod.Annotations[replacedAnnotation], ","), end.ContainerID) {
		return ""
	}
	if end.ExitCode != 0 {
		return fmt.Sprintf("server %s has lost its cache: memcached did not stop on SIGUSR1, but with exit code %d", pod.Name, end.ExitCode)
	}
	changed, ok := timeIn(pod, changedAnnotation)
	if took := end.FinishedAt.Sub(changed); ok && pod.Annotations[endedAnnotation] == "" && took >= stopsWithin(pod) {
		return fmt.Sprintf("server %s has most likely lost its cache: memcached did not stop on SIGUSR1, but after %s, when Kubernetes ends it", pod.Name, took)
	}
	return ""
}

// start is what Kubernetes remembers of an image that it started again in a pod.
type start struct {
	Times int       `json:"times"`
	Last  time.Time `json:"last"`
}

// startsOf are the starts of a server that Kubernetes remembers, by image. Those
// after a crash are not in the annotation.
func startsOf(pod *corev1.Pod, now time.Time) map[string]start {
	var all map[string]start
	if json.Unmarshal([]byte(pod.Annotations[startsAnnotation]), &all) != nil || all == nil {
		all = map[string]start{} // text of another writer is none
	}
	image := requestedImage(pod, serverContainer)
	is := all[image]
	if ended, ok := timeIn(pod, endedAnnotation); ok && is.Times == 0 {
		is = start{1, ended} // 0.0.2 did not count them
	}
	if end := lastEnd(pod); end != nil && end.FinishedAt.After(is.Last) {
		switch {
		case end.ExitCode != 0:
			is = start{is.Times + 1, end.FinishedAt.Time}
		case is.Times > 0:
			is.Last = end.FinishedAt.Time
		}
	}
	if is.Times > 0 {
		all[image] = is
	}
	for image, s := range all {
		if !now.Before(s.Last.Add(backOffLasts)) {
			delete(all, image)
		}
	}
	return all
}

// lastEnd is how the server ended last.
func lastEnd(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	return serverStatus(pod).LastTerminationState.Terminated
}

// heldUntil is until when Kubernetes would hold back the start that a change
// brings about. It does so with an image that it started again lately, counted
// from the last end of the container that it knows of: the one to come, if the
// server ends by itself for other settings, but the one before, if it is the
// kubelet that ends it for another image.
func heldUntil(pod *corev1.Pod, t podTemplate, now time.Time) time.Time {
	image := t.server().Image
	s, ok := startsOf(pod, now)[image]
	switch end := lastEnd(pod); {
	case !ok:
		return time.Time{}
	case requestedImage(pod, serverContainer) == image:
		return s.Last.Add(backOffLasts)
	case end == nil:
		return time.Time{}
	default:
		delay := firstBackOff
		for n := 1; n < s.Times && delay < longestBackOff; n++ {
			delay *= 2
		}
		return end.FinishedAt.Add(min(delay, longestBackOff) + time.Second)
	}
}

// startsAfter is startsAnnotation after a change; "" if there is nothing to
// remember. The first end of a container that the kubelet brings about is none
// that it counts.
func startsAfter(c change) (string, error) {
	all := startsOf(c.pod, c.now)
	image := c.template.server().Image
	if restartsServer(c.pod, c.template) && (lastEnd(c.pod) != nil || requestedImage(c.pod, serverContainer) == image) {
		all[image] = start{all[image].Times + 1, c.now.UTC().Truncate(time.Second)}
	}
	if len(all) == 0 {
		return "", nil
	}
	data, err := json.Marshal(all)
	return string(data), err
}
