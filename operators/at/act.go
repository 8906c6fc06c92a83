package at

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
)

// The kinds under which writes are remembered.
const (
	atKind  = "At"
	podKind = "Pod"
)

// act does what the step says. Every write is here, except that of status: see
// report. To claim is a status write and nothing else.
func (r *reconciler) act(ctx context.Context, obj client.Object, at *atv1alpha1.At, seen observation, next step) error {
	switch next.action {
	case hold, claim:
		return nil
	case create:
		return r.createPod(ctx, at, seen)
	case release:
		return r.openGate(ctx, seen.pod)
	case discard:
		return r.deletePod(ctx, seen.pod, "it must not run: "+next.news.reason)
	case abandon:
		return r.deletePod(ctx, seen.pod, "it could not start")
	case stop:
		return r.stopSidecars(ctx, seen.pod)
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
	if err := apply.Create(ctx, r.client, r.live, at, pod); err != nil {
		return err
	}
	r.writes.Note(podKind, pod)
	log.FromContext(ctx).Info("pod created", "pod", pod.Name, "attempt", attempt)
	return nil
}

// openGate lets the claimed pod run. The patch tests the UID and the place of
// the gate, so it does nothing to any other pod, and nothing twice.
func (r *reconciler) openGate(ctx context.Context, pod *corev1.Pod) error {
	gate := fmt.Sprintf("/spec/schedulingGates/%d", gateIndex(pod))
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": pod.UID},
		{"op": "test", "path": gate + "/name", "value": gateName},
		{"op": "remove", "path": gate},
	})
	if err != nil {
		return err
	}
	err = r.client.Patch(ctx, pod, client.RawPatch(types.JSONPatchType, patch))
	if apierrors.IsInvalid(err) || apierrors.IsNotFound(err) {
		return nil // a test failed, or it is gone: the event that tells is on its way
	}
	if err != nil {
		return err
	}
	r.writes.Note(podKind, pod)
	log.FromContext(ctx).Info("pod may run", "pod", pod.Name)
	return nil
}

// stopSidecars ends what runs in a pod by its active deadline. The kubelet then
// keeps the pod and its logs, as deleting it would not.
func (r *reconciler) stopSidecars(ctx context.Context, pod *corev1.Pod) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"activeDeadlineSeconds":1}}`, pod.UID)
	if err := r.client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return client.IgnoreNotFound(err)
	}
	r.writes.Note(podKind, pod)
	log.FromContext(ctx).Info("sidecars stopped", "pod", pod.Name)
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

// exactly makes a delete mean this object, not another of its name.
func exactly(obj client.Object) client.Preconditions {
	uid := obj.GetUID()
	return client.Preconditions{UID: &uid}
}

// isRefusal says whether the API server will go on refusing until somebody
// changes something: quota, admission (also a webhook that does not answer), Pod
// Security, an invalid pod. All else is trouble that passes.
func isRefusal(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) ||
		apierrors.IsInternalError(err) && strings.Contains(err.Error(), "webhook")
}
