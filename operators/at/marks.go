package at

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/memo"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/run"
)

// This file is about the marks of a pod by which the operator knows it for its
// own. Others may remove one: the label without which the cache does not show the
// pod, or the owner reference.

// ownerMark is the value of ownerAnnotation of the pods of an At.
func ownerMark(at *atv1alpha1.At, gvk schema.GroupVersionKind) string {
	return gvk.Group + "/" + at.Name + "/" + string(at.UID)
}

// markedOwner is the name of the At of a group that made a pod, as its annotation
// has it; empty if it has none.
func markedOwner(pod client.Object, gvk schema.GroupVersionKind) string {
	if parts := strings.Split(pod.GetAnnotations()[ownerAnnotation], "/"); len(parts) == 3 && parts[0] == gvk.Group {
		return parts[1]
	}
	return ""
}

// isOwn says whether this operator made a pod for this very At. It needs two marks: one
// that names the At, and one that only the operator's pods have. Any pod can have an
// owner reference alone.
func isOwn(pod *corev1.Pod, at *atv1alpha1.At, gvk schema.GroupVersionKind) bool {
	if hasUID(pod, at.Status.PodUID) || hasUID(pod, at.Status.PreparedPodUID) {
		return true
	}
	named := metav1.IsControlledBy(pod, at) || pod.Annotations[ownerAnnotation] == ownerMark(at, gvk)
	return named && (pod.Annotations[generationAnnotation] != "" || gateIndex(pod) >= 0 || isShown(pod))
}

// isShown says whether a pod has the label without which no cache shows it.
func isShown(pod *corev1.Pod) bool { return pod.Labels[run.ManagedByLabel] == run.ManagedBy(name) }

// missingMarks are those marks that a pod has lost. Another owner's controller reference
// stays: there can be only one.
func missingMarks(pod *corev1.Pod) (missing []string) {
	if !isShown(pod) {
		missing = append(missing, "label "+run.ManagedByLabel)
	}
	if metav1.GetControllerOf(pod) == nil {
		missing = append(missing, "owner reference")
	}
	return missing
}

// lostForGood is how long a finished At leaves alone what cannot be restored.
const lostForGood = 24 * time.Hour

// takeBackPatch restores the marks of a pod, as long as nobody has changed it.
func takeBackPatch(pod *corev1.Pod, at *atv1alpha1.At, gvk schema.GroupVersionKind) ([]byte, error) {
	metadata := map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion,
		"labels": map[string]string{run.ManagedByLabel: run.ManagedBy(name)},
	}
	if metav1.GetControllerOf(pod) == nil {
		others := slices.DeleteFunc(slices.Clone(pod.OwnerReferences), func(ref metav1.OwnerReference) bool { return ref.UID == at.UID })
		metadata["ownerReferences"] = append(others, *metav1.NewControllerRef(at, gvk))
	}
	return json.Marshal(map[string]any{"metadata": metadata})
}

// takeBack restores the marks that a pod has lost. If that is refused, or if they are
// removed again at once, it is not tried again for a while: the pod is looked at from
// time to time instead.
func (o *observer) takeBack(ctx context.Context, c loop.Caller, at *atv1alpha1.At, seen observation) error {
	missing := strings.Join(missingMarks(seen.pod), " and ")
	patch, err := takeBackPatch(seen.pod, at, o.group.gvk)
	if err != nil {
		return err
	}
	pod := seen.pod.DeepCopy()
	err = c.Client.Patch(ctx, pod, client.RawPatch(types.MergePatchType, patch))
	if err != nil && !apply.IsRefusal(err) {
		return err
	}
	wait := firstRefusal
	if err == nil && len(missingMarks(pod)) > 0 {
		err = errors.New("an admission policy or webhook changes them")
	}
	if err != nil {
		wait = longestRefusal
		if at.Status.Phase.Finished() {
			wait = lostForGood
		}
		log.FromContext(ctx).Info("pod has lost marks of this operator, and they cannot be restored", "pod", pod.Name, "missing", missing, "why", err.Error())
	} else {
		c.Wrote(pod)
		log.FromContext(ctx).Info("pod had lost marks of this operator: restored", "pod", pod.Name, "missing", missing)
	}
	o.takenBack.note(at, seen.now.Add(wait))
	c.Emit(takenBack(pod.Name, missing, err))
	return nil
}

// known are the pods, by At, that must not be lost sight of although the cache may not
// show them, for others can remove their label: those that have none, and those of a
// claimed attempt until they have ended. An At without a pod has an empty name.
type known struct {
	memo.Map[types.NamespacedName, string]
}

// note remembers the pod of an At as it was read from wherever it is shown; nil if the
// API server has none.
func (k *known) note(at *atv1alpha1.At, pod *corev1.Pod) {
	switch {
	case pod == nil:
		k.Set(key(at), "")
	case !isShown(pod), hasUID(pod, at.Status.PodUID) && !pods.IsOver(pod):
		k.Set(key(at), pod.Name)
	default:
		k.Forget(key(at))
	}
}

// mayLast says whether a pod of that name that the cache does not show may be there all
// the same. A deadline ends a run whose pod has not ended: of those this operator has to
// look once.
func (k *known) mayLast(at *atv1alpha1.At, pod string) bool {
	name, ok := k.Get(key(at))
	if !ok {
		return at.Status.Phase == atv1alpha1.Failed && (at.Status.Reason == reasonPendingDeadline || at.Status.Reason == reasonDeadline)
	}
	return name == pod
}
