package webserver

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
)

// This file distinguishes what a revision did from what it only waited for. The Deployment counts both: its deadline
// passes while there is no node for a pod, or while an image is being pulled.

const (
	// usualPendingDeadline is the limit where the spec has none: longer than an autoscaler takes to bring a node.
	usualPendingDeadline = 10 * time.Minute
	// longestRetry is how long the operator waits at most until it tries a revision again by itself.
	longestRetry = time.Hour
	// reportsWithin is how soon after a silence of the API server a node has reported what happened meanwhile: a kubelet
	// sends again every 10 s.
	reportsWithin = 15 * time.Second
)

// verdict is why a rollout is given up.
type verdict struct {
	status.Problem
	// retries is how often the operator tries the revision again by itself; 0 for what the revision did.
	retries int32
}

const (
	// untilAble is for a rollout that there was no room for, or no registry: the revision is as good as it was.
	untilAble = math.MaxInt32
	// once is for pods that ran and did not become ready, of which nothing says why: what they waited for may have
	// been silent.
	once = 1
)

// of is the rollout that is given up. How often it was tried counts for as long as nobody but the operator tries it.
func (v verdict) of(ws *webv1.WebServer, current podTemplate, now time.Time) *webv1.FailedRollout {
	failed := &webv1.FailedRollout{
		Revision: current.revision, Image: current.image(),
		Reason: v.Reason, Message: v.Message, Time: metav1.Time{Time: now},
		DeadlineSeconds: ws.Spec.Rollout.DeadlineSeconds, Retry: retryOf(ws),
	}
	if before := ws.Status.FailedRollout; before != nil && before.Revision == failed.Revision && !isRetried(ws, before) {
		failed.Retries = before.Retries + 1
	}
	if failed.Retries < v.retries {
		const most = 12 // doublings, which is more than there are seconds in an hour
		wait := pendingDeadline(ws)
		wait = min(wait<<min(failed.Retries, most), max(wait, longestRetry))
		failed.RetryTime = &metav1.Time{Time: now.Add(wait)}
	}
	return failed
}

func pendingDeadline(ws *webv1.WebServer) time.Duration {
	if s := ws.Spec.Rollout.PendingDeadlineSeconds; s != 0 {
		return time.Duration(s) * time.Second
	}
	return usualPendingDeadline
}

// isDue says whether it is time to try again what was rolled back.
func isDue(failed *webv1.FailedRollout, now time.Time) bool {
	return failed.RetryTime != nil && !now.Before(failed.RetryTime.Time)
}

// isRefuted says whether all pods became ready with the revision that was given up for not becoming ready: after the
// verdict and before the rollback, or when it was tried again. One that was ready and crashed proves nothing so.
func isRefuted(failed *webv1.FailedRollout, seen observation) bool {
	d := seen.deployment()
	return (failed.Reason != crashLoop || isDue(failed, seen.now)) && currentTemplate(seen).revision == failed.Revision && isComplete(d) && *d.Spec.Replicas > 0
}

// judgeLate is why a rollout that has made no progress within its deadline is given up, or else after what time to
// judge it again; 0 for when something happens.
//
// A pod has the deadline from when its node had all that it takes to start it. Until then it waits, which has a limit
// of its own, and so has a cluster that makes no pods, or stops none.
func judgeLate(ws *webv1.WebServer, d *appsv1.Deployment, members []corev1.Pod, unmounted []pods.Mount, problem *status.Problem, now time.Time) (*verdict, time.Duration) {
	seconds := ws.Spec.Rollout.DeadlineSeconds
	if refused, _ := refusedPods(d); refused != nil {
		v := tooLate("not healthy", seconds, problem)
		isItsOwn := problem.Reason == crashLoop || problem.Reason == pods.NoImage || slices.Contains(pods.NoStartReasons, problem.Reason)
		if !isItsOwn && passes.MatchString(refused.Message) {
			v.retries = untilAble
		}
		return v, 0
	}
	var wait time.Duration
	waitingSince, waiting := time.Time{}, (*status.Problem)(nil)
	for i := range members {
		pod := &members[i]
		if pods.IsReady(pod) || pods.IsOver(pod) {
			continue
		}
		its, _ := problemOf(members[i:i+1], unmounted, now)
		since, lacks := startedAt(pod)
		if lacks != "" {
			if its == nil {
				its = &status.Problem{Reason: reasonDeadline, Message: fmt.Sprintf("pod %q %s", pod.Name, lacks)}
			}
			if at := pod.CreationTimestamp.Time; waiting == nil || at.Before(waitingSince) {
				waitingSince, waiting = at, its
			}
			continue
		}
		due, retries := since.Add(time.Duration(seconds)*time.Second), int32(0)
		switch {
		case its == nil:
			its, retries = &status.Problem{Reason: reasonDeadline, Message: "the pods did not become ready"}, once
			if reported := noticedAt(d).Add(reportsWithin); reported.After(due) {
				due = reported
			}
		case its.Reason == pods.NoImage && isRegistryAway(pod):
			retries = untilAble
		case notSynced.MatchString(its.Message):
			retries = once
		}
		if !now.Before(due) {
			v := tooLate("not healthy", seconds, its)
			v.retries = retries
			return v, 0
		}
		wait = sooner(wait, due.Sub(now))
	}
	if wait > 0 { // a pod that has started may yet become ready
		return nil, wait
	}
	if waiting == nil {
		waiting = &status.Problem{Reason: reasonDeadline, Message: "the cluster does not replace the pods"}
		if waitingSince = changedAt(d); noticedAt(d).After(waitingSince) {
			waitingSince = noticedAt(d)
		}
	}
	limit := pendingDeadline(ws)
	if left := waitingSince.Add(limit).Sub(now); left > 0 {
		return nil, left
	}
	v := tooLate("not started", int32(limit/time.Second), waiting)
	v.retries = untilAble
	return v, 0
}

func tooLate(what string, seconds int32, why *status.Problem) *verdict {
	return &verdict{Problem: status.Problem{Reason: why.Reason, Message: fmt.Sprintf("%s within %d s: %s", what, seconds, why.Message)}}
}

// noRegistry are the words of a pull that fails although nothing has to be wrong with the image: the registry does not
// answer, or not now.
var noRegistry = regexp.MustCompile(`(?i)dial tcp|time-?out|deadline exceeded|connection re(fused|set)|no such host|server misbehaving|too ?many ?requests|status:? 50[0-4]|RegistryUnavailable`)

// passes are the words of a refusal that ends without another revision: a quota that is used up, or a webhook that does
// not answer.
var passes = regexp.MustCompile(`exceeded quota|failed calling webhook`)

// notSynced are the kubelet's words while the API server does not give it a ConfigMap or a Secret.
var notSynced = regexp.MustCompile(`failed to sync (configmap|secret) cache`)

// quoted is what others have named, such as an image, whose name says nothing of the registry.
var quoted = regexp.MustCompile(`"[^"]*"`)

func isRegistryAway(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pods.Statuses(pod), func(c corev1.ContainerStatus) bool {
		w := c.State.Waiting
		return w != nil && noRegistry.MatchString(w.Reason+": "+quoted.ReplaceAllString(w.Message, ""))
	})
}

// noticedAt is when Kubernetes noted that the deadline has passed: the API server answered then. Zero if it did not.
func noticedAt(d *appsv1.Deployment) time.Time {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Reason == reasonDeadline {
			return c.LastUpdateTime.Time
		}
	}
	return time.Time{}
}

// startedAt is since when a pod has had all that it takes to become ready: a node that answers, its volumes and its
// images. As long as it lacks something, it says what. An image that cannot be pulled is nothing that it lacks: another
// image might be there.
func startedAt(pod *corev1.Pod) (since time.Time, lacks string) {
	all := pods.Statuses(pod)
	switch {
	case pods.Unschedulable(pod) != "":
		return since, pods.Unschedulable(pod)
	case pods.OnSilentNodes(*pod) != "":
		return since, "is on a node that does not answer"
	case len(all) == 0:
		return since, "has not been seen by a node yet"
	}
	since = pod.CreationTimestamp.Time
	after := func(t metav1.Time) {
		if t.After(since) {
			since = t.Time
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == corev1.PodScheduled || c.Type == corev1.PodReadyToStartContainers) {
			after(c.LastTransitionTime)
		}
	}
	prepares, works := false, false
	for i, c := range all {
		switch s := c.State; {
		case s.Running != nil:
			works = works || i < len(pod.Status.InitContainerStatuses) && !c.Ready // the next ones wait for it
			if c.RestartCount == 0 {
				after(s.Running.StartedAt)
			}
		case s.Terminated != nil:
			works = works || s.Terminated.ExitCode != 0
		case c.RestartCount == 0 && c.LastTerminationState.Terminated == nil &&
			(s.Waiting == nil || s.Waiting.Reason == "ContainerCreating" || s.Waiting.Reason == "PodInitializing"):
			prepares = true
		default:
			works = true // its image is not there, or it has crashed
		}
		if end := c.LastTerminationState.Terminated; end != nil && c.RestartCount == 1 {
			after(end.StartedAt)
		}
	}
	if prepares && !works {
		return time.Time{}, "has a node that is still pulling its images, or mounting its volumes"
	}
	return since, ""
}
