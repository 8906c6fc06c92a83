package pool

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/operators/memcached/objects"
)

// This file is about servers that are crash-looping.

// Crash is the first container of a pod that is crash-looping. An end that a change in
// place has requested is no crash.
func Crash(pod *corev1.Pod, seen Observation) (pods.Crash, bool) {
	if IsRestarting(pod, seen.Now) {
		return pods.Crash{}, false
	}
	requested := strings.Split(pod.Annotations[objects.ReplacedAnnotation], ",")
	for _, c := range pods.Statuses(pod) {
		if last := c.LastTerminationState.Terminated; last != nil && last.ContainerID != "" && slices.Contains(requested, last.ContainerID) {
			continue
		}
		if crash, is := pods.CrashLoop(c, seen.Now); is {
			return crash, true
		}
	}
	return pods.Crash{}, false
}
