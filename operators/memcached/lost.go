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
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/memo"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// This file is about servers that are there and not in the cache: the cache has only pods
// with the operator's label, which any user may remove. A StatefulSet whose pod has lost
// its label cannot make it again, and has no event that says so.

// firstSeen is since when something holds, by Memcached. Nothing is wrong if it is
// forgotten: what it times begins again.
type firstSeen struct {
	memo.Map[types.NamespacedName, time.Time]
}

// of is since when it has held without a pause; the zero time if it does not.
func (f *firstSeen) of(mc types.NamespacedName, holds bool, now time.Time) time.Time {
	if !holds {
		f.Forget(mc)
	} else if _, ok := f.Get(mc); !ok {
		f.Set(mc, now)
	}
	since, _ := f.Get(mc)
	return since
}

// observeLost looks for servers that have been missing for a while.
func observeLost(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, seen *pool.Observation) error {
	if len(seen.Missing) == 0 || pool.UntilReported(*seen) > 0 {
		return nil
	}
	for _, name := range seen.Missing {
		pod := &corev1.Pod{}
		switch err := live.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: name}, pod); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case pod.DeletionTimestamp != nil || pods.IsOver(pod):
		case isServer(pod, seen.StatefulSet().UID):
			seen.Lost = append(seen.Lost, pod)
		default:
			seen.BlockedBy = pod.Name
		}
	}
	return nil
}

// isServer says whether a pod without the label is a server all the same: the StatefulSet
// owns it, or it has no owner and has what only the operator's template gives.
func isServer(pod *corev1.Pod, set types.UID) bool {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.UID == set
	}
	return pod.Annotations[objects.RevisionAnnotation] != "" && pod.Annotations[objects.ReplaceAnnotation] != ""
}

// blocked reports a pod that has a server's name.
func blocked(mc *v1alpha1.Memcached, seen pool.Observation) *status.Problem {
	if seen.BlockedBy == "" {
		return nil
	}
	return &status.Problem{Reason: apply.ReasonConflict, Message: fmt.Sprintf("Pod %q exists and is not owned by StatefulSet %q: delete it", seen.BlockedBy, objects.PoolName(mc))}
}
