package memcached

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
)

// This file is about servers that are crash-looping.

// crash is the first container of a pod that is crash-looping. An end that a change in
// place has requested is no crash.
func crash(pod *corev1.Pod, seen observation) (pods.Crash, bool) {
	if isRestarting(pod, seen.now) {
		return pods.Crash{}, false
	}
	requested := strings.Split(pod.Annotations[replacedAnnotation], ",")
	for _, c := range pods.Statuses(pod) {
		if last := c.LastTerminationState.Terminated; last != nil && last.ContainerID != "" && slices.Contains(requested, last.ContainerID) {
			continue
		}
		if crash, is := pods.CrashLoop(c, seen.now); is {
			return crash, true
		}
	}
	return pods.Crash{}, false
}

// crashing reports the first server that is crash-looping, in words that change
// only when it has crashed again.
func crashing(seen observation, next *plan) *status.Problem {
	for i := range seen.pods {
		crash, is := crash(&seen.pods[i], seen)
		if !is {
			continue
		}
		p := &status.Problem{Reason: pods.CrashLoopBackOff, Message: fmt.Sprintf("Server %s: %s", seen.pods[i].Name, crash), Retriable: true}
		if up := next.upgrade; up != nil {
			p.Message += fmt.Sprintf("; %s: %s. %d updated", up.Kind, up.Message, up.Updated)
		}
		return p
	}
	return nil
}

// awaitRecovery looks again when a server that has crashed has run for long enough, or one that starts should be
// prepared.
func awaitRecovery(_ *v1alpha1.Memcached, v *view) (p plan) {
	for i := range v.pods {
		if _, until := pods.Unprepared(&v.pods[i], v.unmounted, v.now); !until.IsZero() {
			p.WakeIn(until.Sub(v.now))
		}
		if crash, is := crash(&v.pods[i], v.observation); is {
			p.WakeIn(crash.Until.Sub(v.now))
		}
	}
	return p
}
