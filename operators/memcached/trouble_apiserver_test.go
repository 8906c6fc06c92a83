//go:build apiserver

package memcached

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/operators/memcached/objects"
)

// These tests are about pods that are evicted, refused or cannot start.

// TestEvicted: a pod that is over is no server, and the one that was made for it
// is enough.
func TestEvicted(t *testing.T) {
	for name, option := range map[string]mcOption{"random": size(1), "warm": warm} {
		t.Run(name, func(t *testing.T) {
			var once sync.Once
			s, ctx := newStage(t, func(pod *corev1.Pod) testkit.Outcome {
				evicted := behaves(pod)
				once.Do(func() { evicted = testkit.Outcome{RunsFor: time.Second, PodReason: "Evicted"} })
				return evicted
			}), context.Background()
			s.Must(s.Create(ctx, story(s.R, option)))
			s.Eventually(func() error {
				if n := serverStarts(s.R); n < 2 {
					return fmt.Errorf("%d pods of servers were started", n)
				}
				mc, err := current(ctx, s.R)
				if err == nil && (mc.Status.Replicas != 1 || mc.Status.ReadyReplicas != 1 || len(mc.Status.Nodes) != 1 || !meta.IsStatusConditionTrue(mc.Status.Conditions, status.Ready)) {
					err = fmt.Errorf("status %+v", mc.Status)
				}
				return err
			})
		})
	}
}

// TestRefusedServers: a pool of which no pod was made is healed by an edit, and
// one that starts from nothing with another image never runs the one before.
func TestRefusedServers(t *testing.T) {
	t.Parallel()
	s, ctx := newStage(t, behaves), context.Background()
	tooMuch := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")}
	s.Must(s.Create(ctx, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "small"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}}},
	}))
	s.Must(s.Create(ctx, story(s.R, warm, size(2), func(mc *v1alpha1.Memcached) {
		mc.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: objects.ServerContainer, Resources: corev1.ResourceRequirements{Limits: tooMuch}}}}}
	})))
	s.Eventually(func() error {
		if ready := s.waitsFor(reasonUnavailable); !strings.Contains(ready.Message, "kubectl describe statefulset cache") {
			return fmt.Errorf("message %q", ready.Message)
		}
		return nil
	})
	s.patch(`{"spec":{"podTemplate":null}}`)
	s.settled("memcached:1.6.18", 2)
	isClosed := func() error {
		set, err := read(ctx, s.R, "cache", &appsv1.StatefulSet{})
		if err == nil && *set.Spec.UpdateStrategy.RollingUpdate.Partition != objects.PartitionClosed {
			err = errors.New("the partition is open")
		}
		return err
	}
	s.Eventually(isClosed)
	s.patch(`{"spec":{"size":0}}`)
	s.settled("", 0)
	before := serverStarts(s.R)
	s.patch(`{"spec":{"size":2,"version":"1.6.38"}}`)
	s.settled("memcached:1.6.38", 2)
	if starts := serverStarts(s.R) - before; starts != 2 {
		t.Errorf("%d pods of servers were started, want 2", starts)
	}
	s.Must(restartedOnceEach(restartersOfRuns{}, s.R))
	s.Eventually(isClosed)
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}

// TestUnreadyServersLeave: a pool that does not get ready does not block a drain.
func TestUnreadyServersLeave(t *testing.T) {
	s, ctx := newStage(t, func(*corev1.Pod) testkit.Outcome { return testkit.Outcome{Forever: true, NotReady: true} }), context.Background()
	s.Must(s.Create(ctx, story(s.R, stable, size(2))))
	for _, name := range []string{"cache-0", "cache-1"} {
		s.Eventually(func() error {
			pod, err := read(ctx, s.R, name, &corev1.Pod{})
			if err == nil && pod.Status.Phase != corev1.PodRunning {
				err = errNotYet // one that is not running may leave anyway
			}
			return err
		})
	}
	s.Eventually(func() error { _, err := read(ctx, s.R, "cache", &policyv1.PodDisruptionBudget{}); return err })
	for _, name := range []string{"cache-0", "cache-1"} {
		s.Must(s.SubResource("eviction").Create(ctx, s.object(&corev1.Pod{}, name), &policyv1.Eviction{}))
	}
}

// TestPullUnderQuota: where all pods must have limits, the image is pulled all
// the same.
func TestPullUnderQuota(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	hard := corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory} {
		hard[name] = resource.MustParse("100Gi")
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "all"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	s.Must(s.Create(ctx, quota))
	asMade := quota.DeepCopy()
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{}} // its controller does not run here
	for name := range hard {
		quota.Status.Used[name] = resource.MustParse("0")
	}
	// Not an update: the API server writes to it, too.
	s.Must(s.Status().Patch(ctx, quota, client.MergeFrom(asMade)))
	limits := corev1.ResourceRequirements{
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}, Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
	}
	s.Must(s.Create(ctx, story(s.R, warm, func(mc *v1alpha1.Memcached) {
		mc.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: objects.ServerContainer, Resources: limits}}}}
	})))
	s.settled("memcached:1.6.18", 1)
	s.patch(`{"spec":{"version":"1.6.38"}}`)
	s.settled("memcached:1.6.38", 1)
	s.Must(restartedOnceEach(restartersOfRuns{}, s.R, "cache-0"))
}

// TestSecretOfTheCopysName: the user's Secret may have the name that the copy
// would have; one that is named nowhere is a conflict, whatever is in it.
func TestSecretOfTheCopysName(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	create := func(name string) {
		s.Must(s.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: name}, Data: map[string][]byte{"users": []byte("me:one\n")}}))
	}
	create("cache-auth")
	s.Must(s.Create(ctx, story(s.R, func(mc *v1alpha1.Memcached) { mc.Spec.Auth = &v1alpha1.AuthSpec{SecretName: "cache-auth"} })))
	s.settled("memcached:1.6.18", 1)
	pods, err := servers(ctx, s.R)
	s.Must(err)
	if got := pods[0].Spec.Volumes[0].Secret.SecretName; got != "cache-auth-copy" {
		t.Errorf("Secret %s is mounted", got)
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))

	create("other-auth")
	create("who")
	other := story(s.R, func(mc *v1alpha1.Memcached) { mc.Spec.Auth = &v1alpha1.AuthSpec{SecretName: "who"} })
	other.Name = "other"
	s.Must(s.Create(ctx, other))
	s.Eventually(func() error {
		err := s.Get(ctx, client.ObjectKeyFromObject(other), other)
		if ready := meta.FindStatusCondition(other.Status.Conditions, status.Ready); err == nil && (ready == nil || ready.Reason != apply.ReasonConflict) {
			err = fmt.Errorf("Ready is %+v", ready)
		}
		return err
	})
}
