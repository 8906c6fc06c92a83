package memcached

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
)

// This file is about servers that are there and do not show: the cache has only
// pods with the operator's label, which anybody may take away. A StatefulSet whose
// pod has lost its label cannot make it anew, and has no event that says so.

const (
	// lostPause is how often it is looked for servers that are missing.
	lostPause = time.Minute
	// mostLost bounds how many are looked for at a time.
	mostLost = 10
)

// missingServers are the names of the servers of a StatefulSet that the cache
// does not show.
func missingServers(mc *v1alpha1.Memcached, seen observation) []string {
	s := seen.statefulSet()
	if !isStable(mc) || !isOurs(s, mc) || s.DeletionTimestamp != nil {
		return nil
	}
	shown := map[string]bool{}
	for _, pod := range seen.pods {
		shown[pod.Name] = true
	}
	var missing []string
	for i := range *mc.Spec.Size {
		if name := fmt.Sprintf("%s-%d", poolName(mc), i); !shown[name] && len(missing) < mostLost {
			missing = append(missing, name)
		}
	}
	return missing
}

// observeLost looks for servers that have been missing for a while.
func observeLost(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, seen *observation) error {
	missing := missingServers(mc, *seen)
	if len(missing) == 0 || overdue(mc, seen.now) > 0 {
		return nil
	}
	for _, name := range missing {
		pod := &corev1.Pod{}
		switch err := live.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: name}, pod); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case pod.DeletionTimestamp != nil || isOver(pod):
		case isServer(pod, seen.statefulSet().UID):
			seen.lost = append(seen.lost, pod)
		default:
			seen.inTheWay = pod.Name
		}
	}
	return nil
}

// isServer says whether a pod without the label is a server all the same: it is
// the StatefulSet's, or nobody's and has what only the operator's template gives.
func isServer(pod *corev1.Pod, set types.UID) bool {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.UID == set
	}
	return pod.Annotations[revisionAnnotation] != "" && pod.Annotations[replaceAnnotation] != ""
}

// lookForLost wakes when it is time to look for servers that are missing.
func lookForLost(mc *v1alpha1.Memcached, seen observation, next *plan) {
	if len(missingServers(mc, seen)) == 0 {
		return
	}
	if wait := overdue(mc, seen.now); wait > 0 {
		next.wake(wait)
	} else {
		next.wake(lostPause)
	}
	for _, pod := range seen.lost { // its StatefulSet then takes it back
		next.Then = append(next.Then, patchOf(pod, "labels", "restoring the labels of a server",
			map[string]any{"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "labels": seen.statefulSet().Spec.Template.Labels}, nil))
	}
}

// inTheWay reports a pod that has a server's name.
func inTheWay(mc *v1alpha1.Memcached, seen observation) *problem {
	if seen.inTheWay == "" {
		return nil
	}
	return &problem{reason: reasonConflict, message: fmt.Sprintf("Pod %q exists and is not owned by StatefulSet %q: delete it", seen.inTheWay, poolName(mc))}
}
