package memcached

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/podtemplate"
)

// This file is about running pods in which another writer has changed an image. An image
// that admission has replaced, with that of a mirror for example, is left alone: its
// field manager is the sender of the request, which is the pod's maker or the operator.

// isByHand says whether another writer has changed an image of a running pod.
func isByHand(pod *corev1.Pod, t podTemplate) bool {
	return slices.ContainsFunc(t.Spec.Containers, func(want corev1.Container) bool {
		have := podtemplate.Container(&pod.Spec, want.Name)
		return have.Name != "" && have.Image != want.Image && hasImageByHand(pod, want.Name)
	})
}

func hasImageByHand(pod *corev1.Pod, container string) bool {
	made, image := ownersOf(pod, container)
	return made != "" && image != "" && image != made && image != managedBy
}

// requestedImage is the image of a container as it was requested, whatever admission has made of that.
func requestedImage(pod *corev1.Pod, container string) string {
	if image := pod.Annotations[imageAnnotation+container]; image != "" && !hasImageByHand(pod, container) {
		return image
	}
	return podtemplate.Container(&pod.Spec, container).Image
}

// ownersOf are the field managers that have made a container, and last changed
// its image.
func ownersOf(pod *corev1.Pod, name string) (made, image string) {
	for _, entry := range pod.ManagedFields {
		var fields struct {
			Spec struct {
				Containers map[string]map[string]any `json:"f:containers"`
			} `json:"f:spec"`
		}
		if entry.Subresource != "" || entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			continue
		}
		owned := fields.Spec.Containers[`k:{"name":"`+name+`"}`]
		if _, ok := owned["f:name"]; ok && entry.Operation == metav1.ManagedFieldsOperationUpdate {
			made = entry.Manager
		}
		if _, ok := owned["f:image"]; ok {
			image = entry.Manager
		}
	}
	return made, image
}

// onlyByHand says whether the servers are as the template has them, but for images that
// were changed by hand.
func onlyByHand(seen observation, t podTemplate) bool {
	some := false
	for _, pod := range seen.pods {
		if pod.DeletionTimestamp == nil && !isUpdated(&pod, t) {
			if pod.Annotations[revisionAnnotation] != t.revision {
				return false
			}
			some = true
		}
	}
	return some
}

// canStepInPlace says whether the workload is such that its pods may be changed
// while they run: those of a Deployment only where that undoes what was done by
// hand.
func canStepInPlace(mc *v1alpha1.Memcached, seen observation, t podTemplate) bool {
	if isStable(mc) {
		return isAsApplied(seen.statefulSet(), t) && canChangeInPlace(seen, t)
	}
	d := seen.deployment()
	return isOwned(d, mc) && d.Annotations[revisionAnnotation] == t.revision &&
		d.Status.ObservedGeneration >= d.Generation && onlyByHand(seen, t)
}
