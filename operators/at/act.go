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

// This file has every write. They come in two halves, with the status write
// between them: what comes before a claim, and what only a stored status
// allows.

// The kinds under which writes are remembered.
const (
	atKind  = "At"
	podKind = "Pod"
)

// prepare does what needs no claim.
func (r *reconciler) prepare(ctx context.Context, obj client.Object, at *atv1alpha1.At, seen observation, next step) error {
	switch next.action { //nolint:exhaustive // the others are conclude's
	case create:
		pod := desiredPod(at, r.group.gvk, r.group.podName(at, at.Status.Attempts+1), seen.now)
		if err := apply.Create(ctx, r.client, r.live, at, pod); err != nil {
			return err
		}
		r.writes.Note(podKind, pod)
		log.FromContext(ctx).Info("pod created", "pod", pod.Name, "attempt", at.Status.Attempts+1)
	case discard:
		err := r.client.Delete(ctx, seen.pod, exactly(seen.pod))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		r.writes.NoteDeleted(podKind, seen.pod)
		log.FromContext(ctx).Info("pod deleted that must not run", "pod", seen.pod.Name, "why", next.news.reason)
	case remove:
		err := r.client.Delete(ctx, obj, exactly(obj), client.PropagationPolicy(metav1.DeletePropagationBackground))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		log.FromContext(ctx).Info("deleted: it was kept for ttlSecondsAfterFinished")
	}
	return nil
}

// conclude does what the status that is now stored allows.
func (r *reconciler) conclude(ctx context.Context, seen observation, next step) error {
	switch next.action { //nolint:exhaustive // the others are prepare's
	case claim, release:
		return r.openGate(ctx, seen.pod)
	case stop:
		// A pod past its active deadline is ended by the kubelet, which keeps
		// it and its logs, as deleting it would not.
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"activeDeadlineSeconds":1}}`, seen.pod.UID))
		if err := r.client.Patch(ctx, seen.pod, patch); client.IgnoreNotFound(err) != nil {
			return err
		}
		r.writes.Note(podKind, seen.pod)
		log.FromContext(ctx).Info("sidecars stopped", "pod", seen.pod.Name)
	case abandon:
		err := r.client.Delete(ctx, seen.pod, exactly(seen.pod))
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		r.writes.NoteDeleted(podKind, seen.pod)
		log.FromContext(ctx).Info("pod deleted that could not start", "pod", seen.pod.Name)
	}
	return nil
}

// openGate lets the claimed pod run. The patch tests the UID and the place of
// the gate, so it does nothing to any other pod, and nothing twice.
func (r *reconciler) openGate(ctx context.Context, pod *corev1.Pod) error {
	i := gateIndex(pod)
	if i < 0 {
		return nil
	}
	gate := fmt.Sprintf("/spec/schedulingGates/%d", i)
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": pod.UID},
		{"op": "test", "path": gate + "/name", "value": gateName},
		{"op": "remove", "path": gate},
	})
	if err != nil {
		return err
	}
	if err := r.client.Patch(ctx, pod, client.RawPatch(types.JSONPatchType, patch)); client.IgnoreNotFound(err) != nil {
		return err
	}
	r.writes.Note(podKind, pod)
	log.FromContext(ctx).Info("pod may run", "pod", pod.Name)
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
