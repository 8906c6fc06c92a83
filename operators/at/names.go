package at

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/kit/names"
)

const (
	// maxPodFolder is how long the name of a pod's log folder on the node may
	// be, which the kubelet makes of namespace, name and UID with an
	// underscore between them. A longer one keeps the pod from starting.
	maxPodFolder = 255
	uidLength    = 36
)

// podName is the name of the pod of an attempt, counted from 1. The first
// attempt's is the one that users know: <name>, or <name>-pod. The others have
// the number and a hash of the At's UID at the end, so that they never take
// the name of another At's pod.
func (g group) podName(at *atv1alpha1.At, attempt int32) string {
	if attempt <= 1 {
		return g.bounded(at, "")
	}
	return g.bounded(at, fmt.Sprintf("-%d-%s", attempt, names.Hash(string(at.UID))))
}

// placeholderName is the name of the pod that finds a node for the first attempt.
func (g group) placeholderName(at *atv1alpha1.At) string {
	return g.bounded(at, "-node-"+names.Hash(string(at.UID)))
}

// bounded is the name of a pod with that end.
func (g group) bounded(at *atv1alpha1.At, suffix string) string {
	limit := maxPodFolder - len(at.Namespace) - uidLength - 2 - len(suffix)
	return names.Bounded(g.podNameFor(at.Name), limit) + suffix
}

// key is the key of an At in queue, alarms and memory.
func key(at *atv1alpha1.At) types.NamespacedName {
	return types.NamespacedName{Namespace: at.Namespace, Name: at.Name}
}
