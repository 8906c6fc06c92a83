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
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/memo"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
)

// This file is about servers that are there and not in the cache: the cache has only pods
// with the operator's label, which any user may remove. A StatefulSet whose pod has lost
// its label cannot make it again, and has no event that says so.

const (
	// lostPause is how often the operator looks for servers that are missing.
	lostPause = time.Minute
	// mostLost bounds how many are looked for at a time.
	mostLost = 10
)

// missingServers are the names of the servers of a StatefulSet that the cache
// does not show.
func missingServers(mc *v1alpha1.Memcached, seen observation) []string {
	s := seen.statefulSet()
	if !isStable(mc) || !isOwned(s, mc) || s.DeletionTimestamp != nil {
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

// missingLasts is for how long servers may be missing until that is reported, and
// looked into. A variable, so that tests need not wait.
var missingLasts = 15 * time.Second

// untilReported is how long to wait for that: 0 or less once it is time.
func untilReported(seen observation) time.Duration {
	return seen.missingSince.Add(missingLasts).Sub(seen.now)
}

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
func observeLost(ctx context.Context, live client.Reader, mc *v1alpha1.Memcached, seen *observation) error {
	if len(seen.missing) == 0 || untilReported(*seen) > 0 {
		return nil
	}
	for _, name := range seen.missing {
		pod := &corev1.Pod{}
		switch err := live.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: name}, pod); {
		case apierrors.IsNotFound(err):
		case err != nil:
			return err
		case pod.DeletionTimestamp != nil || pods.IsOver(pod):
		case isServer(pod, seen.statefulSet().UID):
			seen.lost = append(seen.lost, pod)
		default:
			seen.blockedBy = pod.Name
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
	return pod.Annotations[revisionAnnotation] != "" && pod.Annotations[replaceAnnotation] != ""
}

// restoreLabels gives servers that were found without them their labels: their StatefulSet then
// takes them back. While servers are missing, it wakes when it is time to look for them.
func restoreLabels(_ *v1alpha1.Memcached, v *view) (p plan) {
	if len(v.missing) == 0 {
		return p
	}
	if p.WakeIn(untilReported(v.observation)); p.WakeAfter == 0 {
		p.WakeIn(lostPause)
	}
	for _, pod := range v.lost {
		p.Then = append(p.Then, loop.Patch{Object: pod, Part: "labels", Why: "restoring the labels of a server",
			IfSame: true, Metadata: map[string]any{"labels": v.statefulSet().Spec.Template.Labels}})
	}
	return p
}

// blocked reports a pod that has a server's name.
func blocked(mc *v1alpha1.Memcached, seen observation) *status.Problem {
	if seen.blockedBy == "" {
		return nil
	}
	return &status.Problem{Reason: apply.ReasonConflict, Message: fmt.Sprintf("Pod %q exists and is not owned by StatefulSet %q: delete it", seen.blockedBy, poolName(mc))}
}
