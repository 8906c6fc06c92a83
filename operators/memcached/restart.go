package memcached

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/pods"
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
	return pod.DeletionTimestamp == nil && !isRestarting(pod, now) && pods.IsReady(pod)
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

// restart is how far the restart of a server is.
type restart struct {
	// isBusy says that it is in the middle of one: ended once more, it may lose the items
	// that it leaves or reads in, and what it has not seen yet may never be. A container
	// that does not run, and is not about to, has nothing to lose, and a change may be what
	// it needs.
	isBusy bool
	// isOverdue says that it takes longer than it may.
	isOverdue bool
	// after is how long until that may be otherwise although nothing happens; 0 for never.
	after time.Duration
}

func restartOf(pod *corev1.Pod, now time.Time) (r restart) {
	lasts := func(until time.Time) bool {
		wait := until.Sub(now)
		if wait > 0 && (r.after == 0 || wait < r.after) {
			r.after = wait
		}
		return wait > 0
	}
	if changed, ok := timeIn(pod, changedAnnotation); ok && !isAvailable(pod, now) {
		r.isOverdue = !lasts(changed.Add(mayLast(pod)))
	}
	if pod.Annotations[replacedAnnotation] == "" || r.isOverdue {
		return r
	}
	for _, c := range yetToEnd(pod, now) {
		switch end := c.State.Terminated; {
		case end != nil:
			r.isBusy = lasts(end.FinishedAt.Add(startLasts))
		case c.State.Waiting == nil || c.State.Waiting.Reason == "ContainerCreating":
			r.isBusy = true
		}
		if r.isBusy {
			return r
		}
	}
	if running := serverStatus(pod).State.Running; running != nil && !pods.IsReady(pod) {
		r.isBusy = lasts(running.StartedAt.Add(startLasts))
	}
	return r
}

// words say how far a restart is.
func (r restart) words(pod *corev1.Pod, now time.Time) string {
	if pod.DeletionTimestamp != nil || !r.isOverdue {
		return fmt.Sprintf("server %s is restarting", pod.Name)
	}
	changed, _ := timeIn(pod, changedAnnotation)
	at := changed.UTC().Format(time.TimeOnly)
	if len(yetToEnd(pod, now)) > 0 {
		return fmt.Sprintf("server %s was to restart at %s, and has not stopped: it hangs, or memcached in its image ignores SIGUSR1. kubectl delete pod %s starts it anew, with an empty cache", pod.Name, at, pod.Name)
	}
	return fmt.Sprintf("server %s was restarted at %s, and is not ready: kubectl logs %s -c %s may say why", pod.Name, at, pod.Name, serverContainer)
}

// mayLast is how long a restart may take. A change of the image ends the container when its
// time to stop is up, whatever it does.
func mayLast(pod *corev1.Pod) time.Duration {
	if pod.Annotations[endedAnnotation] != "" {
		return restartLasts
	}
	return stopsWithin(pod) + 2*startLasts
}

func serverStatus(pod *corev1.Pod) corev1.ContainerStatus { return pods.Status(pod, serverContainer) }

// stopsWithin is how long a pod has to stop.
func stopsWithin(pod *corev1.Pod) time.Duration {
	seconds := int64(stopSeconds)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		seconds = *s
	}
	return time.Duration(seconds) * time.Second
}

// lostCache says why a server that was to be restarted with its cache has started without
// it. One that leaves its cache ends by itself, with exit code 0.
func lostCache(pod *corev1.Pod) string {
	end := lastEnd(pod)
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
