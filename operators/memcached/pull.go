package memcached

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/status"
)

// This file is about the pods that pull an image before a server needs it.

// pullPause is for how long a pull that has failed for good stays, so that it
// can be looked at, until it is tried again.
const pullPause = 30 * time.Second

// pullContainer is the container of such a pod.
const pullContainer = "pull"

// pull adds the pods that pull the image on every node that it will be needed
// on, and what is wrong with those that are there.
func pull(mc *v1alpha1.Memcached, seen observation, t podTemplate, outdated []*corev1.Pod, next *plan) {
	requested := map[string]bool{}
	for _, pod := range outdated {
		node := pod.Spec.NodeName
		if node == "" || requested[node] || requestedImage(pod, serverContainer) == t.server().Image {
			continue
		}
		requested[node] = true
		i := slices.IndexFunc(seen.pulls, func(p corev1.Pod) bool { return p.Name == pullName(mc, node, t.server().Image) })
		switch {
		case i < 0:
			next.Do(loop.Create{Object: pullPod(mc, node, t), Named: true})
			next.problem = firstOf(next.problem, stillFailed(mc, t.server().Image, node, next))
		case next.problem == nil:
			if seen.pulls[i].DeletionTimestamp == nil { // otherwise it was ended, and has not failed
				next.problem = pullProblem(&seen.pulls[i], seen.now, next)
			}
			if next.problem == nil && !hasPulled(&seen.pulls[i]) {
				next.problem = stillFailed(mc, t.server().Image, node, next)
			}
		}
	}
}

// isPulled says whether an image has been pulled to a node.
func isPulled(seen observation, node, image string) bool {
	return slices.ContainsFunc(seen.pulls, func(p corev1.Pod) bool {
		return p.Spec.NodeName == node && requestedImage(&p, pullContainer) == image && hasPulled(&p)
	})
}

// pulledAs is the image as which it was pulled to a node: what admission has made of it there.
func pulledAs(seen observation, node, image string) string {
	for _, p := range seen.pulls {
		if p.Spec.NodeName == node && requestedImage(&p, pullContainer) == image {
			return podtemplate.Container(&p.Spec, pullContainer).Image
		}
	}
	return image
}

// endOfPull is how the pod's own container has ended; nil if it has not. What else is in the pod, such as a mesh's
// sidecar, may go on for ever.
func endOfPull(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == pullContainer {
			return c.State.Terminated
		}
	}
	return nil
}

func hasPulled(pod *corev1.Pod) bool {
	end := endOfPull(pod)
	return pod.Status.Phase == corev1.PodSucceeded || end != nil && end.ExitCode == 0
}

// pullProblem is what is wrong with a pull, if something is.
func pullProblem(pod *corev1.Pod, now time.Time, next *plan) *problem {
	image, node := requestedImage(pod, pullContainer), pod.Spec.NodeName
	p := &problem{reason: reasonPullFailed, passes: true}
	end := endOfPull(pod)
	if pod.Status.Phase == corev1.PodFailed || end != nil && end.ExitCode != 0 {
		if wait := pod.CreationTimestamp.Add(pullPause).Sub(now); wait > 0 {
			next.wake(wait)
		} else {
			next.Remove(pod, loop.NotRequested)
		}
		why := pod.Status.Message
		if end != nil && why == "" {
			why = strings.TrimSpace(fmt.Sprintf("exit code %d %s", end.ExitCode, end.Message))
		}
		next.upgrade.FailedPull = &v1alpha1.FailedPull{Image: image, Node: node, Message: status.Shortened(why)}
		return failedPull(next.upgrade.FailedPull)
	}
	if hasPulled(pod) {
		return nil
	}
	for _, c := range pods.Statuses(pod) {
		if crash, is := pods.CrashLoop(c, now); is { // of a restartable init container
			p.message = fmt.Sprintf("image %s waits to be pulled on node %s: %s", image, node, crash)
			return p
		}
		switch pods.ObstacleOf(c) {
		case pods.None:
		case pods.NoImage:
			p.message = fmt.Sprintf("image %s cannot be pulled on node %s", imageOfPull(pod, c.Name), node)
			return p
		case pods.NoStart:
			p.message = fmt.Sprintf("image %s does not start on node %s: %s", imageOfPull(pod, c.Name), node, status.Shortened(c.State.Waiting.Message))
			return p
		}
	}
	return nil
}

// imageOfPull is the image that a container was to have: the pod's own as the user knows it, another's, which admission
// has added, as it is there.
func imageOfPull(pod *corev1.Pod, container string) string {
	if container == pullContainer {
		return requestedImage(pod, container)
	}
	return pods.ImageOf(pod, container)
}

func failedPull(f *v1alpha1.FailedPull) *problem {
	return &problem{reason: reasonPullFailed, passes: true,
		message: fmt.Sprintf("image %s does not start on node %s (it needs memcached and /bin/sh): %s", f.Image, f.Node, f.Message)}
}

// stillFailed is the problem of a pull that has failed for good. It holds while it is
// tried again, so that status does not change with every try.
func stillFailed(mc *v1alpha1.Memcached, image, node string, next *plan) *problem {
	up := mc.Status.Upgrade
	if up == nil || up.FailedPull == nil || up.FailedPull.Image != image || up.FailedPull.Node != node {
		return nil
	}
	next.upgrade.FailedPull = up.FailedPull
	return failedPull(up.FailedPull)
}

// removeUselessPulls removes the pulls that no server waits for any more. While the cache
// does not show to what the servers belong, nobody knows what they wait for.
func removeUselessPulls(mc *v1alpha1.Memcached, seen observation, next *plan) {
	if _, ok := workload(mc, seen); !ok {
		return
	}
	for i := range seen.pulls {
		pod := &seen.pulls[i]
		if pod.DeletionTimestamp != nil || slices.ContainsFunc(next.Writes, func(w loop.Write) bool { return loop.ObjectOf(w) == client.Object(pod) }) {
			continue
		}
		if next.upgrade == nil || pod.Annotations[revisionAnnotation] != next.upgrade.Revision {
			next.Remove(pod, loop.NotRequested)
		}
	}
}
