//go:build apiserver

package memcached

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/testkit"
)

// tutorialDeployment is what the tutorial's operator makes for a Memcached.
func tutorialDeployment(mc *v1alpha1.Memcached) *appsv1.Deployment {
	selects := map[string]string{"app": "memcached", "memcached_cr": "cache"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: mc.Namespace, Name: "cache", OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(mc, v1alpha1.GroupVersion.WithKind("Memcached")),
		}},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: selects},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selects}, Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
				Containers: []corev1.Container{{
					Name: "memcached", Image: "memcached:1.4.36-alpine", Command: []string{"memcached", "-m=64", "-o", "modern", "-v"},
					SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				}},
			}}},
	}
}

// TestTakeOver: a Deployment that another operator made under this Memcached is taken
// over, and the effect on the cache is announced first.
func TestTakeOver(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	mc := story(s.R)
	mc.Spec.Size = new(int32(0))
	s.Must(s.Create(ctx, mc))
	s.settled("", 0)
	d, err := read(ctx, s.R, "cache", &appsv1.Deployment{})
	s.Must(err)
	s.Must(s.Delete(ctx, d))
	s.Eventually(func() error { return client.IgnoreAlreadyExists(s.Create(ctx, tutorialDeployment(mc))) })
	s.patch(`{"spec":{"size":1}}`)
	s.settled("memcached:1.6.18", 1)
}

// isForeign arranges for a Memcached with the tutorial's Deployment. Until there is
// a Secret, the operator makes no servers of its own.
func isForeign(options ...mcOption) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		startRestarter(ctx, r)
		mc := story(r, append(options, func(mc *v1alpha1.Memcached) { mc.Spec.Auth = &v1alpha1.AuthSpec{SecretName: "who", Key: "users"} })...)
		if err := r.Client.Create(ctx, mc); err != nil {
			return err
		}
		if err := r.Client.Create(ctx, tutorialDeployment(mc)); err != nil {
			return err
		}
		return r.Client.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "who"}, Data: map[string][]byte{"users": []byte("me:secret\n")}})
	}
}

// TestTakeOverStable: with identity Stable, the tutorial's Deployment is deleted when the
// stable servers are there, and that is announced first.
func TestTakeOverStable(t *testing.T) {
	s, ctx := newStage(t, behaves), context.Background()
	s.Must(isForeign(stable)(ctx, s.R))
	s.settled("memcached:1.6.18", 1)
	s.Eventually(func() error { return nothingLeft(0, 1, 0)(ctx, s.R) })
	s.Eventually(func() error {
		var events eventsv1.EventList
		if err := s.List(ctx, &events, client.InNamespace(s.R.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "ColdUpgrade" && strings.Contains(e.Note, "new servers start, with empty caches, and then the old ones go") {
				return nil
			}
		}
		return fmt.Errorf("no event ColdUpgrade among %d", len(events.Items))
	})
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}

// takesOver is the story of the tutorial's Deployment and stable servers.
func takesOver() testkit.Scenario {
	return testkit.Scenario{
		Name: "takes-over", Pods: behaves, Arrange: isForeign(stable),
		Settled: isReadyWith(reasonIsReady, "memcached:1.6.18", 1),
		Check:   nothingLeft(0, 1, 0),
		Timeout: time.Minute,
	}
}
