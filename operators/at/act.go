package at

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
)

// This file has the writes of each action. To prepare a pod, to claim or to reject it is a
// status write and nothing else.

// write puts the writes of a step into its plan.
func (o *observer) write(obj client.Object, seen observation, next *step) error {
	at := o.group.view(obj)
	next.WakeAt = next.wakeAt
	switch next.action {
	case hold:
	case prepare, claim, reject:
		next.Claim = string(next.action)
	case create:
		pod := desiredPod(at, o.group.gvk, o.group.podName(at, at.Status.Attempts+1), seen.now)
		preferNode(&pod.Spec, nodeFor(at, seen.placeholder))
		next.Do(loop.Create{Object: pod})
	case createEarly:
		next.Do(createdEarly(earlyPod(at, o.group.gvk, o.group.podName(at, at.Status.Attempts+1), seen.now), "early"))
	case createPlaceholder:
		next.Do(createdEarly(placeholderFor(at, o.group.gvk, o.group.placeholderName(at), seen.now), "placeholder"))
	case removePlaceholder:
		next.Do(loop.Delete{Object: seen.placeholder, Why: "no run needs it any more to find a node"})
	case release:
		next.Do(loop.Call{Object: next.pod, Part: string(release), Do: func(ctx context.Context, c loop.Caller) error {
			if isPrepared(at) { // until it is claimed, an At can change: a cache that is late must not run what it was
				due, _ := scheduledTime(at) // there is none without
				if err := o.isCurrent(ctx, c, at, due); err != nil {
					return err
				}
			}
			return o.removeGate(ctx, c, at, next.pod, nodeFor(at, seen.placeholder))
		}})
	case discard:
		why := "the At was changed after it was made"
		if at.Status.PendingSince != nil {
			why = "its node has refused it"
		} else if next.news.reason != "" {
			why = "it must not run: " + next.news.reason
		}
		next.Do(loop.Delete{Object: next.pod, Why: why})
	case takeBack:
		// An At that is being deleted may leave its pod behind, without an owner.
		next.Do(loop.Call{Object: next.pod, Part: "marks", IfCurrent: true, Do: func(ctx context.Context, c loop.Caller) error {
			return o.takeBack(ctx, c, at, seen)
		}})
	case withdraw:
		next.Do(withdrawalOf(next.pod, next.news.reason))
	case abandon:
		next.Do(loop.Delete{Object: next.pod, Why: "it could not start", IfSame: true})
	case stop:
		// By its active deadline: the kubelet then keeps the pod and its logs, as
		// deleting it would not.
		next.Do(loop.Patch{Object: next.pod, Part: string(stop), Why: "stopping the remaining containers",
			Spec: map[string]any{"activeDeadlineSeconds": shortestDeadline}})
	case remove:
		next.Do(loop.Delete{Object: obj, Why: "it was kept for ttlSecondsAfterFinished"})
	default:
		return fmt.Errorf("no such action: %q", next.action)
	}
	return nil
}

// createdEarly makes a pod before its time: by a call, so that a refusal does not hold back the pod when it is due.
func createdEarly(pod *corev1.Pod, part string) loop.Call {
	return loop.Call{Object: pod, Part: part, Do: func(ctx context.Context, c loop.Caller) error {
		if err := c.Client.Create(ctx, pod); err != nil {
			return client.IgnoreAlreadyExists(err) // what is there is seen when it is due
		}
		c.Wrote(pod)
		log.FromContext(ctx).Info("pod created before its time", "pod", pod.Name)
		return nil
	}}
}

// withdrawalOf marks a pod, and keeps its command from running.
func withdrawalOf(pod *corev1.Pod, reason string) loop.Patch {
	patch := loop.Patch{Object: pod, Part: string(withdraw), Why: "pod withdrawn: its command is not to run any more: " + reason,
		Metadata: map[string]any{"annotations": map[string]any{withdrawnAnnotation: reason}}}
	if gateIndex(pod) >= 0 {
		// Under the resource version that was read: whoever removes the gate changes it, and an older view cannot
		// remove the gate any more.
		patch.IfSame = true
	} else {
		// A process that waits is ended by its node, at the deadline. One that is started later finds the mark.
		patch.Spec = map[string]any{"activeDeadlineSeconds": shortestDeadline}
	}
	return patch
}

// removeGate removes the scheduling gate of the claimed or prepared pod. An update costs the API
// server much less than a patch, and nothing else costs as much when many Ats are due at
// once. It is refused where the cache is late, or where the pod has fields that this
// program is too old to know; then a patch does it, which tests the UID and the place of
// the gate. So it is this pod in any case, and nothing is done twice. The update also says
// which node is ready for the pod, if one is.
func (o *observer) removeGate(ctx context.Context, c loop.Caller, at *atv1alpha1.At, pod *corev1.Pod, node string) error {
	index := gateIndex(pod)
	now := o.now()
	open := pod.DeepCopy()
	if open.Annotations == nil {
		open.Annotations = map[string]string{}
	}
	open.Annotations[releasedAnnotation] = micros(now)
	open.Spec.SchedulingGates = slices.Delete(open.Spec.SchedulingGates, index, index+1)
	preferNode(&open.Spec, node)
	// An empty entry clears them, and the API server then keeps none. They are
	// for those who share an object by server-side apply; to keep them up costs
	// as much as all the rest of the update.
	open.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	err := c.Client.Update(ctx, open)
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		err = c.Client.Patch(ctx, open, client.RawPatch(types.JSONPatchType, gatePatch(pod, index, now)))
	}
	if apierrors.IsInvalid(err) && !isAsTested(ctx, c.Live, pod) {
		return nil // a test failed: the event of the change follows
	}
	if err != nil {
		return client.IgnoreNotFound(err) // so does that of its deletion
	}
	c.Wrote(open)
	log.FromContext(ctx).Info("scheduling gate removed", "pod", pod.Name)
	isFirst := isPrepared(at) || at.Status.Attempts == 1 && at.Status.PendingSince == nil
	if isFirst && at.Status.ScheduledTime != nil {
		late := max(0, now.Sub(at.Status.ScheduledTime.Time))
		lateness.WithLabelValues(o.group.gvk.Group).Observe(late.Seconds())
		o.latest.note(late)
	}
	return nil
}

// gatePatch removes the gate of the very pod, unless it is withdrawn.
func gatePatch(pod *corev1.Pod, index int, now time.Time) []byte {
	gate := fmt.Sprintf("/spec/schedulingGates/%d", index)
	// What is not there equals null; below what is not there nothing is tested.
	unmarked, released := "/metadata/annotations/"+escaped(withdrawnAnnotation), fmt.Sprintf(
		`{"op":"add","path":"/metadata/annotations/%s","value":%q}`, escaped(releasedAnnotation), micros(now))
	if len(pod.Annotations) == 0 {
		unmarked, released = "/metadata/annotations", fmt.Sprintf(
			`{"op":"add","path":"/metadata/annotations","value":{%q:%q}}`, releasedAnnotation, micros(now))
	}
	return fmt.Appendf(nil, `[{"op":"test","path":"/metadata/uid","value":%q},{"op":"test","path":%q,"value":null},`+
		`{"op":"test","path":"%s/name","value":%q},{"op":"remove","path":%[3]q},%[5]s]`, pod.UID, unmarked, gate, gateName, released)
}

// escaped makes a name a part of a JSON pointer (RFC 6901).
func escaped(name string) string { return strings.ReplaceAll(name, "/", "~1") }

// isAsTested says whether the API server has the very pod as gatePatch wants it:
// what it answered is then that it refuses to have the gate removed.
func isAsTested(ctx context.Context, live client.Reader, pod *corev1.Pod) bool {
	now, err := getPod(ctx, live, client.ObjectKeyFromObject(pod))
	return err == nil && hasUID(now, pod.UID) && gateIndex(now) >= 0 && gateIndex(now) == gateIndex(pod) &&
		!isWithdrawn(now) && (len(now.Annotations) == 0) == (len(pod.Annotations) == 0)
}
