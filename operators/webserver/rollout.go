package webserver

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/status"
)

// This file judges a rollout by the Deployment and its pods.

// rollout is how far the pods are with the template that the Deployment has.
type rollout struct {
	// complete is true when all pods have it and are available.
	complete bool
	// trouble is what keeps a pod from serving; nil if nothing is known.
	trouble *problem
	// failure is set when the rollout is to be given up.
	failure *webv1.FailedRollout
	// wakeAfter is when to judge it again, if nothing happens; 0 for never.
	wakeAfter time.Duration
}

// judge reads the rollout. It is given up only where there is a revision to go
// back to, and only if it is the one that the spec asks for. One that has become
// healthy is proven: what befalls its pods later, when they are moved or
// restarted, is trouble to tell, and only a crash loop soon after is its own fault.
func judge(ws *webv1.WebServer, seen observation, desired podTemplate) rollout {
	d := seen.deployment()
	current := currentTemplate(seen)
	var pods []corev1.Pod
	for _, pod := range seen.pods {
		if current == "" || pod.Annotations[revisionAnnotation] == current.revision() {
			pods = append(pods, pod)
		}
	}
	r := rollout{complete: isComplete(d), trouble: troubleOf(pods, seen.now)}
	refusal, since := refusedPods(d)
	if r.trouble == nil {
		r.trouble = refusal
	}
	good := goodTemplate(seen)
	known := ws.Status.FailedRollout
	if good == "" || current == "" || current != desired || d.Status.ObservedGeneration < d.Generation ||
		good == current || known != nil && known.Revision == current.revision() {
		return r
	}
	fail := func(why problem) rollout {
		r.failure = &webv1.FailedRollout{
			Revision: current.revision(), Image: current.image(),
			Reason: why.reason, Message: why.message, Time: metav1.Time{Time: seen.now},
		}
		return r
	}
	deadline := time.Duration(ws.Spec.Rollout.DeadlineSeconds) * time.Second
	proven := ws.Status.LastGoodRevision == current.revision()
	if !proven {
		if refused := checkFailure(pods); refused != nil {
			return fail(*refused)
		}
		late := isPast(d)
		if refusal != nil && !r.complete && !late {
			// A ReplicaSet that is there from an earlier time is never late.
			wait := since.Add(deadline).Sub(seen.now)
			late, r.wakeAfter = wait <= 0, max(wait, 0)
		}
		if late {
			why := problem{reason: "ProgressDeadlineExceeded", message: "the pods did not become ready"}
			if r.trouble != nil {
				why = *r.trouble
			}
			why.message = fmt.Sprintf("not healthy within %d s: %s", ws.Spec.Rollout.DeadlineSeconds, why.message)
			return fail(why)
		}
	}
	onProbation := proven && ws.Status.LastGoodTime != nil &&
		seen.now.Before(ws.Status.LastGoodTime.Add(deadline))
	if onProbation && r.trouble != nil && r.trouble.reason == crashLoop {
		return fail(problem{reason: crashLoop, message: "healthy at first, and then " + r.trouble.message})
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

// isPast says whether the Deployment's progress deadline has passed.
func isPast(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == "ProgressDeadlineExceeded"
	})
}

// refusedPods is why the API server refuses to make pods, if it does, such as a
// quota; and since when that says something about what the Deployment now is.
func refusedPods(d *appsv1.Deployment) (*problem, time.Time) {
	for _, c := range d.Status.Conditions {
		if c.Type != appsv1.DeploymentReplicaFailure || c.Status != corev1.ConditionTrue {
			continue
		}
		since := c.LastTransitionTime.Time
		for _, f := range d.ManagedFields {
			if f.Manager == managedBy && f.Subresource == "" && f.Time != nil && f.Time.After(since) {
				since = f.Time.Time // before that, it was another rollout
			}
		}
		return &problem{reason: "PodsRefused", message: "no pod can be made: " + status.Shortened(c.Message)}, since
	}
	return nil, time.Time{}
}

const crashLoop = "CrashLoopBackOff"

// crashesForgotten is after how long a container that runs is not on its way from
// one crash to the next any more: the kubelet's back-off begins anew then, too.
const crashesForgotten = 10 * time.Minute

// troubleOf is what keeps the first of the pods in trouble from serving. The
// kubelet alternates between an error, the wait for the next try, and the try; all
// give the same words, so that status does not change with every turn.
func troubleOf(pods []corev1.Pod, now time.Time) *problem {
	for _, pod := range pods {
		for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			if p := containerTrouble(container, now); p != nil {
				return p
			}
		}
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return &problem{reason: "Unschedulable", message: "no node takes the pod: " + status.Shortened(condition.Message)}
			}
		}
	}
	return nil
}

func containerTrouble(container corev1.ContainerStatus, now time.Time) *problem {
	if wait := container.State.Waiting; wait != nil {
		switch wait.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull":
			return &problem{reason: "ImagePullBackOff", message: fmt.Sprintf("the image %q cannot be pulled", container.Image)}
		case crashLoop:
			return crashing(container, container.LastTerminationState.Terminated)
		case "CreateContainerConfigError", "CreateContainerError", "RunContainerError":
			return &problem{reason: wait.Reason, message: fmt.Sprintf("container %q cannot start: %s", container.Name, status.Shortened(wait.Message))}
		}
		return nil
	}
	if container.Ready { // an init container that has ended well is
		return nil
	}
	end, run := container.State.Terminated, container.State.Running
	if end != nil && container.RestartCount > 0 {
		return crashing(container, end)
	}
	if run != nil && container.RestartCount > 1 && now.Sub(run.StartedAt.Time) < crashesForgotten {
		return crashing(container, container.LastTerminationState.Terminated)
	}
	return nil
}

// crashing tells how a container ends again and again.
func crashing(container corev1.ContainerStatus, end *corev1.ContainerStateTerminated) *problem {
	p := &problem{reason: crashLoop, message: fmt.Sprintf("container %q crashes again and again", container.Name)}
	if end != nil {
		p.message += fmt.Sprintf(", with exit code %d", end.ExitCode)
		if text := status.Shortened(end.Message); text != "" {
			p.message += ": " + text
		}
	}
	return p
}

// checkFailure is what the check of the configuration said, if it refused it.
func checkFailure(pods []corev1.Pod) *problem {
	for _, pod := range pods {
		for _, init := range pod.Status.InitContainerStatuses {
			if init.Name != checkContainer {
				continue
			}
			for _, end := range []*corev1.ContainerStateTerminated{init.State.Terminated, init.LastTerminationState.Terminated} {
				if end != nil && end.ExitCode != 0 {
					return &problem{reason: "InvalidConfiguration", message: status.Shortened(end.Message)}
				}
			}
		}
	}
	return nil
}
