package webserver

import (
	"fmt"
	"regexp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
)

// This file judges a rollout by the Deployment and its pods.

// rollout is how far the pods are with the template that the Deployment has.
type rollout struct {
	// complete is true when all pods have it and are available.
	complete bool
	// problem is what keeps a pod from serving; nil if nothing is known.
	problem *status.Problem
	// failure is set when the rollout is to be given up.
	failure *webv1.FailedRollout
	// wakeAfter is when to judge it again, if nothing happens; 0 for never.
	wakeAfter time.Duration
}

// judge reads the rollout. It gives up only a rollout of the revision that the spec
// requests, and only where there is a revision to go back to. A revision that has become
// healthy is proven: what happens to its pods later, when they are moved or restarted, is
// a problem to report, and only a crash loop soon after is its own fault.
func judge(ws *webv1.WebServer, seen observation, desired podTemplate) rollout {
	d := seen.deployment()
	current := currentTemplate(seen)
	var members []corev1.Pod
	for _, pod := range seen.pods {
		if current.isNone() || pod.Annotations[revisionAnnotation] == current.revision {
			members = append(members, pod)
		}
	}
	r := rollout{complete: isComplete(d)}
	var until time.Time
	if r.problem, until = problemOf(members, seen.unmounted, seen.now); r.problem == nil {
		r.problem, _ = refusedPods(d)
	}
	ended := endedPods(d, members)
	if r.problem == nil && !r.complete {
		r.problem = ended
	}
	if !until.IsZero() {
		r.wakeAfter = until.Sub(seen.now)
	}
	if failed := ws.Status.FailedRollout; isFailed(ws, seen, desired) && failed.RetryTime != nil {
		r.wakeAfter = sooner(r.wakeAfter, failed.RetryTime.Sub(seen.now))
	}
	good := seen.good
	if good.isNone() || current.isNone() || !current.is(desired) || d.Status.ObservedGeneration < d.Generation ||
		good.is(current) || isFailed(ws, seen, current) {
		return r
	}
	fail := func(why verdict) rollout {
		r.failure = why.of(ws, current, seen.now)
		return r
	}
	deadline := time.Duration(ws.Spec.Rollout.DeadlineSeconds) * time.Second
	proven := ws.Status.LastGoodRevision == current.revision
	if !proven {
		if refused := checkFailure(members); refused != nil {
			return fail(verdict{Problem: *refused})
		}
		if ended != nil && !r.complete {
			return fail(verdict{Problem: *ended, retries: once})
		}
		if !r.complete {
			late, wait := isLate(d, members, deadline, seen.now)
			if late {
				var why *verdict
				if why, wait = judgeLate(ws, d, members, seen.unmounted, r.problem, seen.now); why != nil {
					return fail(*why)
				}
			}
			r.wakeAfter = sooner(r.wakeAfter, wait)
		}
	}
	onProbation := proven && ws.Status.LastGoodTime != nil &&
		seen.now.Before(ws.Status.LastGoodTime.Add(deadline))
	if onProbation && r.problem != nil && r.problem.Reason == crashLoop && until.IsZero() {
		return fail(verdict{Problem: status.Problem{Reason: crashLoop, Message: "healthy at first, and then " + r.problem.Message}})
	}
	return r
}

// isComplete says whether all pods have the template and are available.
func isComplete(d *appsv1.Deployment) bool {
	if d.UID == "" || d.Spec.Replicas == nil {
		return false
	}
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == *d.Spec.Replicas &&
		s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.UpdatedReplicas
}

// isLate says whether a rollout has made no progress for as long as it may, or how
// long it still has; 0 if the Deployment will report that.
//
// The Deployment's own deadline is the measure while it runs. It does not run for
// a Deployment that was complete without a pod, and begins nothing for a
// ReplicaSet that is there from an earlier time: then the condition is the one of
// an earlier rollout, and the time since the last change counts.
func isLate(d *appsv1.Deployment, members []corev1.Pod, deadline time.Duration, now time.Time) (bool, time.Duration) {
	changed := changedAt(d)
	for _, c := range d.Status.Conditions {
		switch {
		case c.Type != appsv1.DeploymentProgressing:
		case c.Status == corev1.ConditionFalse && c.Reason == reasonDeadline:
			if changed.IsZero() || !c.LastUpdateTime.Time.Before(changed.Add(deadline-clockSlack)) {
				return true, 0
			}
		case c.Reason == "ReplicaSetUpdated" || c.Reason == "NewReplicaSetCreated" || c.Reason == "FoundNewReplicaSet":
			if refused, _ := refusedPods(d); refused == nil {
				return false, 0
			}
		}
	}
	since := changed
	if refused, from := refusedPods(d); refused != nil && from.After(since) {
		since = from
	}
	for _, pod := range members { // one that became ready was progress
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(since) {
				since = c.LastTransitionTime.Time
			}
		}
	}
	if since.IsZero() {
		return false, 0
	}
	wait := since.Add(deadline).Sub(now)
	return wait <= 0, max(wait, 0)
}

// clockSlack is how much earlier than it should a deadline may be noted: times in
// the API are whole seconds.
const clockSlack = 2 * time.Second

// changedAt is when the operator, or an autoscaler, last changed the Deployment.
// Conditions of an earlier time are about an earlier rollout.
func changedAt(d *appsv1.Deployment) time.Time {
	var last time.Time
	for _, f := range d.ManagedFields {
		if (f.Manager == managedBy && f.Subresource == "" || f.Subresource == "scale") && f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// sooner is the earlier of two waits, of which 0 is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// isFailed says whether a template is the one that was rolled back, and is not to
// be tried again.
func isFailed(ws *webv1.WebServer, seen observation, template podTemplate) bool {
	failed := ws.Status.FailedRollout
	return failed != nil && !template.isNone() && failed.Revision == template.revision &&
		!isRetried(ws, failed) && !isDue(failed, seen.now) && !isRefuted(failed, seen)
}

// isRetried says whether the user wants what failed to be tried again: with
// another deadline, or just so. Version 0.0.2 did not note the deadline.
func isRetried(ws *webv1.WebServer, failed *webv1.FailedRollout) bool {
	retry := retryOf(ws)
	return retry != "" && retry != failed.Retry ||
		failed.DeadlineSeconds != 0 && failed.DeadlineSeconds != ws.Spec.Rollout.DeadlineSeconds
}

// retryOf stands for the value of the annotation that requests another try.
func retryOf(ws *webv1.WebServer) string {
	value := ws.Annotations[webv1.AnnotationRetry]
	if value == "" {
		return ""
	}
	return names.Hash(value)
}

// refusedPods is why the API server refuses to make pods, if it does, such as a
// quota; and since when.
func refusedPods(d *appsv1.Deployment) (*status.Problem, time.Time) {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return &status.Problem{Reason: reasonRefusedPods, Message: "pods cannot be created: " + status.Shortened(c.Message)}, c.LastTransitionTime.Time
		}
	}
	return nil, time.Time{}
}

// manyEnded is how many pods of a rollout end before it is given up. One may have met a node in trouble.
const manyEnded = 3

// endedPods is what became of pods of this rollout, if nodes have refused or evicted many: for a sysctl, for example, or
// for the disk that they fill. The Deployment makes another pod at once, and counts that as progress.
func endedPods(d *appsv1.Deployment, members []corev1.Pod) *status.Problem {
	changed, ended := changedAt(d), 0
	var last *corev1.Pod
	for i := range members {
		pod := &members[i]
		if pod.Status.Phase != corev1.PodFailed || pod.CreationTimestamp.Time.Before(changed) {
			continue
		}
		if ended++; last == nil || last.CreationTimestamp.Before(&pod.CreationTimestamp) {
			last = pod
		}
	}
	if ended < manyEnded {
		return nil
	}
	return &status.Problem{Reason: reasonEndedPods, Message: status.Shortened(fmt.Sprintf(
		"%d pods were ended by their nodes, the last one for %s: %s", ended, last.Status.Reason, last.Status.Message))}
}

// The reasons for which a rollout is given up, besides those of the kubelet.
const (
	crashLoop           = pods.CrashLoopBackOff
	reasonDeadline      = "ProgressDeadlineExceeded" // as in the Deployment
	reasonBadConfig     = "InvalidConfiguration"
	reasonRefusedPods   = "PodsRefused"
	reasonEndedPods     = "PodsEnded"
	reasonUnschedulable = "Unschedulable"
)

// problemOf is what keeps the first pod with a problem from serving, and until when a crash
// loop counts, or a pod may be prepared, if nothing happens until then. The kubelet alternates between an error, the wait
// for the next try, and the try; all give the same message, so that status does not change
// with every turn.
func problemOf(members []corev1.Pod, unmounted []pods.Mount, now time.Time) (p *status.Problem, until time.Time) {
	for i := range members {
		pod := &members[i]
		for _, container := range pods.Statuses(pod) {
			if crash, is := pods.CrashLoop(container, now); is {
				return &status.Problem{Reason: crashLoop, Message: crash.String()}, crash.Until
			}
			if reason, words := pods.CannotStart(pod, container); reason != "" {
				return &status.Problem{Reason: reason, Message: words}, time.Time{}
			}
		}
		if words := pods.Unschedulable(pod); words != "" {
			return &status.Problem{Reason: reasonUnschedulable, Message: "the pod " + words}, time.Time{}
		}
		words, again := pods.Unprepared(pod, unmounted, now)
		if words != "" {
			return &status.Problem{Reason: pods.ContainerCreating, Message: words}, time.Time{}
		}
		if until.IsZero() {
			until = again
		}
	}
	if words := pods.OnSilentNodes(members...); words != "" {
		return &status.Problem{Reason: pods.NodeNotResponding, Message: words}, until
	}
	return nil, until
}

// mayPass are the words of a check that fails although nothing has to be wrong with the configuration: it names
// a host that has no address now, an upstream Service for example that is made a moment later.
var mayPass = regexp.MustCompile(`(?i)host not found|could not be resolved|name resolution`)

// isFinal says whether the check will say the same each time: it ended by itself, and not for want of an address.
func isFinal(end *corev1.ContainerStateTerminated) bool {
	const signalled = 128 // and the number of the signal
	isOwn := end.Signal == 0 && end.ExitCode < signalled && end.Reason != "OOMKilled"
	return isOwn && !mayPass.MatchString(end.Message)
}

// checkFailure is what the check of the configuration said, if it refused it for good. What may pass is tried until
// the deadline, as whatever else keeps a pod from starting.
func checkFailure(members []corev1.Pod) *status.Problem {
	for _, pod := range members {
		for _, init := range pod.Status.InitContainerStatuses {
			if init.Name != checkContainer {
				continue
			}
			for _, end := range []*corev1.ContainerStateTerminated{init.State.Terminated, init.LastTerminationState.Terminated} {
				if end != nil && end.ExitCode != 0 && isFinal(end) {
					return &status.Problem{Reason: reasonBadConfig, Message: pods.LastWords(end.Message)}
				}
			}
		}
	}
	return nil
}
