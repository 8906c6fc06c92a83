package pool

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/operators/memcached/objects"
)

// This file is about the images of pods: which was requested, whether another writer has
// changed it, as what it was pulled, and which version of memcached it has. An image that
// admission has replaced, with that of a mirror for example, is left alone: its field manager
// is the sender of the request, which is the pod's maker or the operator.

// RequestedImage is the image of a container as it was requested, whatever admission has made of that.
func RequestedImage(pod *corev1.Pod, container string) string {
	if image := pod.Annotations[objects.ImageAnnotation+container]; image != "" && !hasImageByHand(pod, container) {
		return image
	}
	return podtemplate.Container(&pod.Spec, container).Image
}

// isByHand says whether another writer has changed an image of a running pod.
func isByHand(pod *corev1.Pod, t objects.PodTemplate) bool {
	return slices.ContainsFunc(t.Spec.Containers, func(want corev1.Container) bool {
		have := podtemplate.Container(&pod.Spec, want.Name)
		return have.Name != "" && have.Image != want.Image && hasImageByHand(pod, want.Name)
	})
}

func hasImageByHand(pod *corev1.Pod, container string) bool {
	made, image := ownersOf(pod, container)
	return made != "" && image != "" && image != made && image != objects.ManagedBy
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

// IsPulled says whether an image has been pulled to a node.
func IsPulled(seen Observation, node, image string) bool {
	return slices.ContainsFunc(seen.Pulls, func(p corev1.Pod) bool {
		return p.Spec.NodeName == node && RequestedImage(&p, objects.PullContainer) == image && HasPulled(&p)
	})
}

// PulledAs is the image as which it was pulled to a node: what admission has made of it there.
func PulledAs(seen Observation, node, image string) string {
	for _, p := range seen.Pulls {
		if p.Spec.NodeName == node && RequestedImage(&p, objects.PullContainer) == image {
			return podtemplate.Container(&p.Spec, objects.PullContainer).Image
		}
	}
	return image
}

// EndOfPull is how the pod's own container has ended; nil if it has not. What else is in the pod, such as a mesh's
// sidecar, may go on for ever.
func EndOfPull(pod *corev1.Pod) *corev1.ContainerStateTerminated {
	return pods.Status(pod, objects.PullContainer).State.Terminated
}

// HasPulled says whether a pod has pulled its image.
func HasPulled(pod *corev1.Pod) bool {
	end := EndOfPull(pod)
	return pod.Status.Phase == corev1.PodSucceeded || end != nil && end.ExitCode == 0
}

// versionTags are image tags that begin with a version of memcached.
var versionTags = regexp.MustCompile(`^v?([0-9]+)\.([0-9]+)\.([0-9]+)($|[-._+])`)

// VersionOf reads memcached's version from the tag of an image; empty if the tag does not
// say.
func VersionOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	i := strings.LastIndex(name, ":")
	if i < 0 || !versionTags.MatchString(name[i+1:]) {
		return ""
	}
	return strings.TrimPrefix(name[i+1:], "v")
}

// versionFor is the version of the template's image: what its tag says or else what memcached
// itself said when the image was pulled, on this node if it was.
func versionFor(seen Observation, node string, t objects.PodTemplate) string {
	image := t.Server().Image
	return cmp.Or(VersionOf(image), pulledVersion(seen.Pulls, image, node), pulledVersion(seen.Pulls, image, ""))
}

// pulledVersion is what memcached itself said when the image was pulled on a node, or on
// any if that is empty: a tag may have been another image when another node pulled it.
func pulledVersion(pulls []corev1.Pod, image, node string) string {
	for _, pod := range pulls {
		if end := EndOfPull(&pod); RequestedImage(&pod, objects.PullContainer) == image && end != nil && (node == "" || pod.Spec.NodeName == node) {
			if words := strings.Fields(end.Message); len(words) == 2 && words[0] == "memcached" {
				return words[1]
			}
		}
	}
	return ""
}

// KeepsCache says whether a server of version to starts with the memory that
// one of version from has left. 1.6.25 changed what is in the file, and servers
// before that do not read it.
func KeepsCache(from, to string) bool {
	return !IsBefore(to, 1, 6, 25) || IsBefore(from, 1, 6, 25)
}

// IsBefore says whether a version is known to be before another one.
func IsBefore(version string, than ...int) bool {
	numbers := versionTags.FindStringSubmatch(version)
	if numbers == nil {
		return false
	}
	for i, limit := range than {
		if n, err := strconv.Atoi(numbers[i+1]); err == nil && n != limit {
			return n < limit
		}
	}
	return false
}
