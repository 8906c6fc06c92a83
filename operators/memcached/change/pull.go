package change

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// This file is about the pods that pull an image before a server needs it.

// pullPause is for how long a pull that has failed for good stays, so that it
// can be looked at, until it is tried again: longer where the node has no place for
// its pod, which waits for others to go.
const pullPause, noPlacePause = 30 * time.Second, 5 * time.Minute

// noPlace is how the failure of a pod begins that its node did not run.
const noPlace = "the node does not take the pod that pulls it"

// ReasonPullFailed is the reason in status.
const ReasonPullFailed = "ImagePullFailed"

// PullImage creates the pods that pull the image on every node that it will be needed on,
// and reports what is wrong with those that are there.
func PullImage(mc *v1alpha1.Memcached, v *View) (p Plan) {
	requested, image := map[string]bool{}, v.template.Server().Image
	for _, pod := range v.outdated {
		node := pod.Spec.NodeName
		if node == "" || requested[node] || pool.RequestedImage(pod, objects.ServerContainer) == image {
			continue
		}
		requested[node] = true
		i := slices.IndexFunc(v.Pulls, func(p corev1.Pod) bool { return p.Name == objects.PullName(mc, node, image) })
		if i < 0 {
			p.Do(loop.Create{Object: objects.PullPod(mc, node, v.template), Named: true})
			p.reportFailed(mc, failedBefore(v, image, node))
		} else if p.Problem == nil {
			p.watchPull(mc, v, &v.Pulls[i])
		}
	}
	return p
}

// watchPull reports what is wrong with a pull. One that has failed for good is tried again.
func (p *Plan) watchPull(mc *v1alpha1.Memcached, v *View, pod *corev1.Pod) {
	failed := failureOf(pod)
	switch {
	case pod.DeletionTimestamp != nil: // it was ended, and has not failed
		failed = nil
	case failed != nil:
		pause := pullPause
		if hasNoPlace(failed) {
			pause = noPlacePause
		}
		if wait := pod.CreationTimestamp.Add(pause).Sub(v.Now); wait > 0 {
			p.WakeIn(wait)
		} else if !isUseless(mc, pod) { // which is removed anyway
			p.Remove(pod, loop.NotRequested)
		}
	default:
		p.Problem = pullProblem(pod, v.Now)
	}
	if failed == nil && p.Problem == nil && !pool.HasPulled(pod) {
		failed = failedBefore(v, pool.RequestedImage(pod, objects.PullContainer), pod.Spec.NodeName)
	}
	p.reportFailed(mc, failed)
}

// reportFailed reports a pull that has failed for good, if there is one.
func (p *Plan) reportFailed(mc *v1alpha1.Memcached, f *v1alpha1.FailedPull) {
	if f == nil {
		return
	}
	p.Remember(&mc.Status).Upgrade.FailedPull = f
	what := "does not start on node " + f.Node + " (it needs memcached and /bin/sh)"
	if hasNoPlace(f) {
		what = "cannot be pulled on node " + f.Node
	}
	p.Report(ReasonPullFailed, "image %s %s: %s", f.Image, what, f.Message)
}

// hasNoPlace says whether a pull has failed because its node did not run the pod.
func hasNoPlace(f *v1alpha1.FailedPull) bool { return strings.HasPrefix(f.Message, noPlace) }

// failureOf is why a pull has failed for good; nil if it has not.
func failureOf(pod *corev1.Pod) *v1alpha1.FailedPull {
	end := pool.EndOfPull(pod)
	if pod.Status.Phase != corev1.PodFailed && (end == nil || end.ExitCode == 0) {
		return nil
	}
	why := pod.Status.Message
	switch {
	case end == nil && pod.Status.Reason != "": // the kubelet's, OutOfcpu for example
		why = fmt.Sprintf("%s: %s", noPlace, cmp.Or(why, pod.Status.Reason))
	case end != nil && why == "":
		why = strings.TrimSpace(fmt.Sprintf("exit code %d %s", end.ExitCode, end.Message))
	}
	return &v1alpha1.FailedPull{Image: pool.RequestedImage(pod, objects.PullContainer), Node: pod.Spec.NodeName, Message: status.Shortened(why)}
}

// pullProblem is what is wrong with a pull that has not failed, if something is.
func pullProblem(pod *corev1.Pod, now time.Time) *status.Problem {
	image, node := pool.RequestedImage(pod, objects.PullContainer), pod.Spec.NodeName
	p := &status.Problem{Reason: ReasonPullFailed, Retriable: true}
	if pool.HasPulled(pod) {
		return nil
	}
	for _, c := range pods.Statuses(pod) {
		if crash, is := pods.CrashLoop(c, now); is { // of a restartable init container
			p.Message = fmt.Sprintf("image %s waits to be pulled on node %s: %s", image, node, crash)
			return p
		}
		switch reason, _ := pods.CannotStart(pod, c); reason {
		case "":
		case pods.NoImage:
			p.Message = fmt.Sprintf("image %s cannot be pulled on node %s", imageOfPull(pod, c.Name), node)
			return p
		default:
			p.Message = fmt.Sprintf("image %s does not start on node %s: %s", imageOfPull(pod, c.Name), node, status.Shortened(c.State.Waiting.Message))
			return p
		}
	}
	if words := pods.OnSilentNodes(*pod); words != "" {
		p.Message = fmt.Sprintf("image %s waits to be pulled: %s", image, words)
		return p
	}
	return nil
}

// imageOfPull is the image that a container was to have: the pod's own as the user knows it, another's, which admission
// has added, as it is there.
func imageOfPull(pod *corev1.Pod, container string) string {
	if container == objects.PullContainer {
		return pool.RequestedImage(pod, container)
	}
	return pods.ImageOf(pod, container)
}

// failedBefore is a pull that had failed for good. It holds while it is tried again, so
// that status does not change with every try.
func failedBefore(v *View, image, node string) *v1alpha1.FailedPull {
	up := v.announced
	if up == nil || up.FailedPull == nil || up.FailedPull.Image != image || up.FailedPull.Node != node {
		return nil
	}
	return up.FailedPull
}

// RemovePulls removes the pulls that no server waits for any more. While the cache does not
// show to what the servers belong, nobody knows what they wait for.
func RemovePulls(mc *v1alpha1.Memcached, v *View) (p Plan) {
	if _, ok := pool.Workload(mc, v.Observation); !ok {
		return p
	}
	for i := range v.Pulls {
		if pod := &v.Pulls[i]; pod.DeletionTimestamp == nil && isUseless(mc, pod) {
			p.Remove(pod, loop.NotRequested)
		}
	}
	return p
}

// isUseless says whether a pull is not for the change that status has.
func isUseless(mc *v1alpha1.Memcached, pod *corev1.Pod) bool {
	up := mc.Status.Upgrade
	return up == nil || pod.Annotations[objects.RevisionAnnotation] != up.Revision
}
