package memcached

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/contents"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/run"
	"example.com/fairlead/operators/memcached/change"
	"example.com/fairlead/operators/memcached/objects"
	"example.com/fairlead/operators/memcached/pool"
)

// Operator is the Memcached operator.
var Operator = run.Operator{
	Name:        objects.Name,
	AddToScheme: v1alpha1.AddToScheme,
	Kinds:       []run.Kind{loop.Declare(kind, newKind)},
	Busy: func(ctx context.Context, cached client.Reader) (string, error) {
		return busy(ctx, cached, time.Now())
	},
}

// busy: another operator would finish a warm upgrade, but a server that is being
// restarted meanwhile is best not left alone. One that waits, for an image that
// cannot be pulled for example, and one whose restart is overdue do not count: they may
// be so for ever.
func busy(ctx context.Context, cached client.Reader, now time.Time) (string, error) {
	var list v1alpha1.MemcachedList
	if err := cached.List(ctx, &list); err != nil {
		return "", err
	}
	for _, mc := range list.Items {
		up := mc.Status.Upgrade
		if up == nil || up.Kind != v1alpha1.Warm || up.Server == "" {
			continue
		}
		var pod corev1.Pod
		err := cached.Get(ctx, client.ObjectKey{Namespace: mc.Namespace, Name: up.Server}, &pod)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		if _, changed := pool.TimeIn(&pod, objects.ChangedAnnotation); changed && !pool.IsAvailable(&pod, now) && !pool.RestartOf(&pod, now).IsOverdue {
			return fmt.Sprintf("Memcached %s/%s is being upgraded warm: server %s is restarting", mc.Namespace, mc.Name, pod.Name), nil
		}
	}
	return "", nil
}

// kind is what the loop has to know about Memcacheds, but for the functions that
// have a state.
var kind = loop.Kind[*v1alpha1.Memcached, pool.Observation, *change.Plan]{
	Operator: objects.Name,
	Empty:    &v1alpha1.Memcached{},
	Children: children,
	Watches:  watches,
	Writes: []string{
		"apply Deployment", "apply StatefulSet", "apply Service", "apply PodDisruptionBudget", "apply Secret",
		"delete Deployment", "delete StatefulSet", "delete Secret", "delete PodDisruptionBudget", "create Pod", "delete Pod",
		"patch Deployment/adopt", "patch Deployment/template", "patch Pod/labels", "patch Pod/secrets", "patch Pod/resize", "patch Pod/refused", "patch Pod/change",
		"status Memcached",
	},
	Decide: decide,
	Summarize: func(mc *v1alpha1.Memcached, seen pool.Observation, next *change.Plan, did loop.Did) {
		seen.Children = did.Children
		mc.Status = summarize(mc, seen, next, did.Failure)
	},
	Conditions: func(mc *v1alpha1.Memcached) *[]metav1.Condition { return &mc.Status.Conditions },
	Announce:   announce,
	Note:       func(mc *v1alpha1.Memcached, seen pool.Observation) { figures.Note(key(mc), figureOf(mc, seen)) },
	Words: map[string]string{
		"spec.replicas": "size",
		"spec.template.spec.containers[" + objects.ServerContainer + "].image": "image",
	},
	// Retries stay fast enough that a name that was taken is noticed to be free.
	Retry:    loop.Backoff{First: 50 * time.Millisecond, Longest: 15 * time.Second},
	Refusals: loop.Backoff{First: time.Second, Longest: 15 * time.Second},
}

// newKind makes what a manager runs.
func newKind(parts run.Parts) (loop.Kind[*v1alpha1.Memcached, pool.Observation, *change.Plan], error) {
	made := kind
	resizes, err := servesResize(parts)
	if err != nil {
		return made, err
	}
	o := &observer{digests: &contents.Digests{}, limits: &limits{}, missing: &firstSeen{}, resizes: resizes, now: parts.Now}
	made.Observe, made.Forget = o.observe, o.forget
	if err := disruption.Index(parts, objects.MemcachedKind); err != nil {
		return made, err
	}
	return made, registerMetrics()
}

// servesResize says whether running pods can be resized: from Kubernetes 1.33 on, unless
// it is turned off.
func servesResize(parts run.Parts) (bool, error) {
	list, err := parts.Served(context.Background(), "v1")
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == "pods/resize" }), nil
}
