package pool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/memcached/objects"
)

// This file reads off a pod how far a restart of its server is, what became of
// the cache, and whether Kubernetes would hold back the next one.

const (
	// RestartLasts is for how long a server that was made to end by itself is
	// waited for: it sees other settings within two minutes.
	RestartLasts = 5 * time.Minute
	// StartLasts is for how long a server that was restarted is let alone to
	// get ready. It reads in 1 GiB in half a second.
	StartLasts = 30 * time.Second

	// backOffLasts is for how long Kubernetes remembers that it started an
	// image again. The first delay doubles with each start, up to the longest.
	backOffLasts                 = 10*time.Minute + 30*time.Second
	firstBackOff, longestBackOff = 10 * time.Second, 5 * time.Minute
)

// IsAvailable says whether a server is there and ready, and not being restarted.
func IsAvailable(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp == nil && !IsRestarting(pod, now) && pods.IsReady(pod)
}

// IsRestarting says whether a change in place has not yet ended what it ends. The pod's
// status alone does not show it: until its kubelet gets to it, it is the status from
// before the change.
func IsRestarting(pod *corev1.Pod, now time.Time) bool {
	if pod.Annotations[objects.ReplacedAnnotation] == "" {
		return false
	}
	if pod.Status.ObservedGeneration != 0 && pod.Status.ObservedGeneration < pod.Generation {
		return true
	}
	return len(YetToEnd(pod, now)) > 0
}

// YetToEnd are the containers that the last change of a pod in place is to end,
// and has not.
func YetToEnd(pod *corev1.Pod, now time.Time) []corev1.ContainerStatus {
	if requested, ok := endedBy002(pod); ok && !now.Before(requested.Add(RestartLasts)) {
		return nil // it has the settings already
	}
	replaced := strings.Split(pod.Annotations[objects.ReplacedAnnotation], ",")
	return slices.DeleteFunc(slices.Clone(pod.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.ContainerID == "" || !slices.Contains(replaced, c.ContainerID)
	})
}

// endedBy002 is when 0.0.2 made a server end for other settings, if it was the last to
// do that: it did not note when it changed a pod.
func endedBy002(pod *corev1.Pod) (time.Time, bool) {
	ended, ok := TimeIn(pod, objects.EndedAnnotation)
	return ended, ok && pod.Annotations[objects.ChangedAnnotation] == ""
}

// TimeIn reads a time from an annotation.
func TimeIn(pod *corev1.Pod, name string) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, pod.Annotations[name])
	return at, err == nil
}

// Restart is how far the restart of a server is.
type Restart struct {
	// IsBusy says that it is in the middle of one: ended once more, it may lose the items
	// that it leaves or reads in, and what it has not seen yet may never be. A container
	// that does not run, and is not about to, has nothing to lose, and a change may be what
	// it needs.
	IsBusy bool
	// IsOverdue says that it takes longer than it may.
	IsOverdue bool
	// After is how long until that may be otherwise although nothing happens; 0 for never.
	After time.Duration
}

// RestartOf is how far the restart of a server is.
func RestartOf(pod *corev1.Pod, now time.Time) (r Restart) {
	lasts := func(until time.Time) bool {
		wait := until.Sub(now)
		if wait > 0 && (r.After == 0 || wait < r.After) {
			r.After = wait
		}
		return wait > 0
	}
	if changed, ok := TimeIn(pod, objects.ChangedAnnotation); ok && !IsAvailable(pod, now) {
		r.IsOverdue = !lasts(changed.Add(mayLast(pod)))
	}
	if pod.Annotations[objects.ReplacedAnnotation] == "" || r.IsOverdue {
		return r
	}
	for _, c := range YetToEnd(pod, now) {
		switch end := c.State.Terminated; {
		case end != nil:
			r.IsBusy = lasts(end.FinishedAt.Add(StartLasts))
		case c.State.Waiting == nil || c.State.Waiting.Reason == "ContainerCreating":
			r.IsBusy = true
		}
		if r.IsBusy {
			return r
		}
	}
	if running := ServerStatus(pod).State.Running; running != nil && !pods.IsReady(pod) {
		r.IsBusy = lasts(running.StartedAt.Add(StartLasts))
	}
	return r
}

// Words say how far a restart is.
func (r Restart) Words(pod *corev1.Pod, now time.Time) string {
	if pod.DeletionTimestamp != nil || !r.IsOverdue {
		return fmt.Sprintf("server %s is restarting", pod.Name)
	}
	changed, _ := TimeIn(pod, objects.ChangedAnnotation)
	at := changed.UTC().Format(time.TimeOnly)
	if len(YetToEnd(pod, now)) > 0 {
		return fmt.Sprintf("server %s was to restart at %s, and has not stopped: it hangs, or memcached in its image ignores SIGUSR1. kubectl delete pod %s starts it anew, with an empty cache", pod.Name, at, pod.Name)
	}
	return fmt.Sprintf("server %s was restarted at %s, and is not ready: kubectl logs %s -c %s may say why", pod.Name, at, pod.Name, objects.ServerContainer)
}

// mayLast is how long a restart may take. A change of the image ends the container when its
// time to stop is up, whatever it does.
func mayLast(pod *corev1.Pod) time.Duration {
	if pod.Annotations[objects.EndedAnnotation] != "" {
		return RestartLasts
	}
	return stopsWithin(pod) + 2*StartLasts
}

// ServerStatus is the status of the container that serves.
func ServerStatus(pod *corev1.Pod) corev1.ContainerStatus {
	return pods.Status(pod, objects.ServerContainer)
}

// stopsWithin is how long a pod has to stop.
func stopsWithin(pod *corev1.Pod) time.Duration {
	seconds := int64(objects.StopSeconds)
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		seconds = *s
	}
	return time.Duration(seconds) * time.Second
}

// LostCache says why a server that was to be restarted with its cache has started without
// it. One that leaves its cache ends by itself, with exit code 0.
func LostCache(pod *corev1.Pod) string {
	end := lastEnd(pod)
	if end == nil || !slices.Contains(strings.Split(pod.Annotations[objects.ReplacedAnnotation], ","), end.ContainerID) {
		return ""
	}
	if end.ExitCode != 0 {
		return fmt.Sprintf("server %s has lost its cache: memcached did not stop on SIGUSR1, but with exit code %d", pod.Name, end.ExitCode)
	}
	changed, ok := TimeIn(pod, objects.ChangedAnnotation)
	if took := end.FinishedAt.Sub(changed); ok && pod.Annotations[objects.EndedAnnotation] == "" && took >= stopsWithin(pod) {
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
	if json.Unmarshal([]byte(pod.Annotations[objects.StartsAnnotation]), &all) != nil || all == nil {
		all = map[string]start{} // text of another writer is none
	}
	image := RequestedImage(pod, objects.ServerContainer)
	is := all[image]
	if ended, ok := TimeIn(pod, objects.EndedAnnotation); ok && is.Times == 0 {
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
	return ServerStatus(pod).LastTerminationState.Terminated
}

// HeldUntil is until when Kubernetes would hold back the start that a change
// brings about. It does so with an image that it started again lately, counted
// from the last end of the container that it knows of: the one to come, if the
// server ends by itself for other settings, but the one before, if it is the
// kubelet that ends it for another image.
func HeldUntil(pod *corev1.Pod, t objects.PodTemplate, now time.Time) time.Time {
	image := t.Server().Image
	s, ok := startsOf(pod, now)[image]
	switch end := lastEnd(pod); {
	case !ok:
		return time.Time{}
	case RequestedImage(pod, objects.ServerContainer) == image:
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

// StartsAfter is StartsAnnotation after a change; "" if there is nothing to
// remember. The first end of a container that the kubelet brings about is none
// that it counts.
func StartsAfter(pod *corev1.Pod, t objects.PodTemplate, now time.Time) (string, error) {
	all := startsOf(pod, now)
	image := t.Server().Image
	if RestartsServer(pod, t) && (lastEnd(pod) != nil || RequestedImage(pod, objects.ServerContainer) == image) {
		all[image] = start{all[image].Times + 1, now.UTC().Truncate(time.Second)}
	}
	if len(all) == 0 {
		return "", nil
	}
	data, err := json.Marshal(all)
	return string(data), err
}
