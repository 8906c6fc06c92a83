package loop

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/kit/status"
)

// applied is a write that makes a ConfigMap what is wanted.
func applied(b *bench, name, page string) Apply {
	seen := &corev1.ConfigMap{}
	if err := b.client.Get(b.Context(), client.ObjectKey{Namespace: "n", Name: name}, seen); client.IgnoreNotFound(err) != nil {
		b.Fatal(err)
	}
	return Apply{Object: seen, Want: corev1ac.ConfigMap(name, "n").WithData(map[string]string{"page": page}).
		WithLabels(map[string]string{apply.ManagedByLabel: "bench-operator", apply.InstanceLabel: "s"}).
		WithOwnerReferences(metav1ac.OwnerReference().WithAPIVersion("v1").WithKind("Service").WithName("s").WithUID("u").WithController(true))}
}

// TestOverruled: what admission makes of a child is a condition for as long as it is so: it needs no other write, it is
// not Ready's business, and another process of the operator goes on with it.
func TestOverruled(t *testing.T) {
	const one, both = "ConfigMap a: data.page", "ConfigMap a: data.page; ConfigMap b: data.page"
	b, key := newBench(t), client.ObjectKey{Namespace: "n", Name: "s"}
	b.executor.children.Client = interceptor.NewClient(b.client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			child := obj.(*unstructured.Unstructured)
			child.SetUID(types.UID(child.GetName()))
			if page, _, _ := unstructured.NestedString(child.Object, "data", "page"); page == "changed" {
				_ = unstructured.SetNestedField(child.Object, "by admission", "data", "page")
			}
			return c.Create(ctx, child, opts...)
		},
	})
	start := func() { b.executor.children.Sound, b.executor.overruled = apply.NewSound(), newOverruled() }
	start()

	for _, step := range []struct {
		what   string
		plan   func() []Write
		sent   []string
		says   string
		events int
	}{
		{what: "a child is made", plan: func() []Write { return []Write{applied(b, "a", "changed")} },
			sent: []string{"apply ConfigMap", "status Service"}, says: one, events: 1},
		{what: "nothing has happened", plan: func() []Write { return []Write{applied(b, "a", "changed")} }, says: one},
		{what: "it is not applied", plan: func() []Write { return nil }, says: one},
		{what: "another one is made", plan: func() []Write { return []Write{applied(b, "b", "changed")} },
			sent: []string{"apply ConfigMap", "status Service"}, says: both, events: 1},
		{what: "the second is deleted", plan: func() []Write { return []Write{Delete{Object: applied(b, "b", "").Object}} },
			sent: []string{"delete ConfigMap", "status Service"}, says: one, events: 1},
		{what: "another process starts", plan: func() []Write { start(); return nil }, says: one},
		{what: "the first becomes as wanted", plan: func() []Write { return []Write{applied(b, "a", "by admission")} },
			sent: []string{"status Service"}},
	} {
		b.kind.Decide = func(*corev1.Service, string) (*Plan, error) { return &Plan{Writes: step.plan()}, nil }
		ready, _, err := b.reconcile()
		if err != nil || ready == nil || ready.Status != metav1.ConditionTrue {
			t.Errorf("%s: Ready is %+v, error %v", step.what, ready, err)
		}
		var s corev1.Service
		if err := b.client.Get(t.Context(), key, &s); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(s.Status.Conditions, status.Overruled)
		if (c != nil) != (step.says != "") || c != nil && (c.Status != metav1.ConditionTrue || !strings.HasSuffix(c.Message, ": "+step.says)) {
			t.Errorf("%s: Overruled is %+v, want %q", step.what, c, step.says)
		}
		if !slices.Equal(b.sent, step.sent) || len(b.events.Events) != step.events {
			t.Errorf("%s: sent %q, want %q; %d events, want %d", step.what, b.sent, step.sent, len(b.events.Events), step.events)
		}
		b.sent = nil
		for len(b.events.Events) > 0 {
			<-b.events.Events
		}
	}
}
