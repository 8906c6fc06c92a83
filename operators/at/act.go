package at

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
)

// The kinds under which writes are remembered.
const (
	atKind  = "At"
	podKind = "Pod"
)

var errLate = errors.New("the cache is late")

// act does what the step says. Every write is here, except that of status: see
// report. To claim is a status write and nothing else.
func (r *reconciler) act(ctx context.Context, obj client.Object, at *atv1alpha1.At, seen observation, next step) error {
	switch next.action {
	case hold, claim:
		return nil
	case create:
		return r.createPod(ctx, at, seen)
	case release:
		return r.openGate(ctx, at, next.pod)
	case discard:
		if err := r.isCurrent(ctx, obj); err != nil {
			return err
		}
		why := "the At was changed after it was made"
		if next.news.reason != "" {
			why = "it must not run: " + next.news.reason
		}
		return r.deletePod(ctx, next.pod, why)
	case takeBack:
		return r.takeBack(ctx, obj, at, seen)
	case withdraw:
		return r.withdraw(ctx, next.pod, next.news.reason)
	case abandon:
		return r.deletePod(ctx, next.pod, "it could not start")
	case stop:
		return r.stop(ctx, next.pod)
	case remove:
		err := r.client.Delete(ctx, obj, exactly(obj), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err == nil {
			log.FromContext(ctx).Info("deleted: it was kept for ttlSecondsAfterFinished")
		}
		return client.IgnoreNotFound(err)
	}
	return fmt.Errorf("no such action: %q", next.action)
}

func (r *reconciler) createPod(ctx context.Context, at *atv1alpha1.At, seen observation) error {
	attempt := at.Status.Attempts + 1
	pod := desiredPod(at, r.group.gvk, r.group.podName(at, attempt), seen.now)
	err, said := r.client.Create(ctx, pod), "pod created"
	if apierrors.IsAlreadyExists(err) {
		said = "pod is there already, and the cache did not show it"
		pod, err = r.findOwn(ctx, at, client.ObjectKeyFromObject(pod))
	}
	if err != nil {
		return err
	}
	r.wrote(pod)
	r.hidden.note(key(at), pod)
	log.FromContext(ctx).Info(said, "pod", pod.Name, "attempt", attempt)
	return nil
}

// openGate lets the claimed pod run. An update costs the API server much less than
// a patch, and nothing else is as dear when many Ats are due at once. It is refused
// where the cache is late, or where the pod has fields that this program is too
// old to know; then a patch does it, which tests the UID and the place of the
// gate. So it is this pod in any case, and nothing is done twice.
func (r *reconciler) openGate(ctx context.Context, at *atv1alpha1.At, pod *corev1.Pod) error {
	index := gateIndex(pod)
	now := r.now()
	open := pod.DeepCopy()
	if open.Annotations == nil {
		open.Annotations = map[string]string{}
	}
	open.Annotations[releasedAnnotation] = micros(now)
	open.Spec.SchedulingGates = slices.Delete(open.Spec.SchedulingGates, index, index+1)
	// An empty entry clears them, and the API server then keeps none. They are
	// for those who share an object by server-side apply; to keep them up costs
	// as much as all the rest of the update.
	open.ManagedFields = []metav1.ManagedFieldsEntry{{}}
	err := r.client.Update(ctx, open)
	if apierrors.IsConflict(err) || apierrors.IsInvalid(err) {
		err = r.client.Patch(ctx, open, client.RawPatch(types.JSONPatchType, gatePatch(pod, index, now)))
	}
	if apierrors.IsInvalid(err) && !r.isAsTested(ctx, pod) {
		return nil // a test failed: the event that tells is on its way
	}
	if err != nil {
		return client.IgnoreNotFound(err) // so is that of its deletion
	}
	r.wrote(open)
	log.FromContext(ctx).Info("pod may run", "pod", pod.Name)
	if at.Status.Attempts == 1 && at.Status.ScheduledTime != nil {
		lateness.WithLabelValues(r.group.gvk.Group).Observe(max(0, now.Sub(at.Status.ScheduledTime.Time).Seconds()))
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
func (r *reconciler) isAsTested(ctx context.Context, pod *corev1.Pod) bool {
	now, err := getPod(ctx, r.live, client.ObjectKeyFromObject(pod))
	return err == nil && isThe(now, pod.UID) && gateIndex(now) >= 0 && gateIndex(now) == gateIndex(pod) &&
		!isWithdrawn(now) && (len(now.Annotations) == 0) == (len(pod.Annotations) == 0)
}

// withdraw marks a claimed pod that has never run, as long as nobody has changed
// it: who opens the gate does. Who wants to open it by an older view is refused.
func (r *reconciler) withdraw(ctx context.Context, pod *corev1.Pod, why string) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"resourceVersion":%q,"annotations":{%q:%q}}}`, pod.UID, pod.ResourceVersion, withdrawnAnnotation, why)
	marked := pod.DeepCopy()
	if err := r.client.Patch(ctx, marked, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return err
	}
	r.wrote(marked)
	log.FromContext(ctx).Info("pod withdrawn: its scheduling gate is not removed any more", "pod", pod.Name, "why", why)
	return nil
}

// stop ends what runs in a pod by its active deadline. The kubelet then keeps the
// pod and its logs, as deleting it would not.
func (r *reconciler) stop(ctx context.Context, pod *corev1.Pod) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"activeDeadlineSeconds":1}}`, pod.UID)
	if err := r.client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.wrote(pod)
	log.FromContext(ctx).Info("what is left of the pod is stopped", "pod", pod.Name)
	return nil
}

func (r *reconciler) deletePod(ctx context.Context, pod *corev1.Pod, why string) error {
	if err := r.client.Delete(ctx, pod, exactly(pod)); client.IgnoreNotFound(err) != nil {
		return err
	}
	r.writes.NoteDeleted(podKind, pod)
	log.FromContext(ctx).Info("pod deleted", "pod", pod.Name, "why", why)
	return nil
}

// isCurrent returns a conflict if the cache's At is not the API server's. Two
// caches are not equally late: one may show a pod before the other shows that
// the At was changed and that another operator has claimed this pod for it.
func (r *reconciler) isCurrent(ctx context.Context, obj client.Object) error {
	now := r.group.newObject()
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(obj), now); err != nil {
		return err
	}
	if now.GetResourceVersion() != obj.GetResourceVersion() {
		return apierrors.NewConflict(schema.GroupResource{Group: r.group.gvk.Group, Resource: "ats"}, obj.GetName(), errLate)
	}
	return nil
}

// exactly makes a delete mean this object, not another of its name.
func exactly(obj client.Object) client.Preconditions {
	uid := obj.GetUID()
	return client.Preconditions{UID: &uid}
}
