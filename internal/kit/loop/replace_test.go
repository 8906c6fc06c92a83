package loop

import (
	"context"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"example.com/fairlead/internal/kit/apply"
)

// TestReplaceTemplate: the write that begins the first rollout has all that the rollout goes by.
func TestReplaceTemplate(t *testing.T) {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "d", UID: "u"}}
	p, err := ReplaceTemplate(d, "bench-operator", appsv1ac.Deployment("d", "n").WithSpec(appsv1ac.DeploymentSpec().
		WithReplicas(3).
		WithStrategy(appsv1ac.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType)).
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(map[string]string{"a": "b"})).
		WithTemplate(corev1ac.PodTemplateSpec().WithLabels(map[string]string{"a": "b"}))))
	if err != nil {
		t.Fatal(err)
	}
	fields := slices.Sorted(maps.Keys(p.Spec))
	if want := []string{"replicas", "selector", "strategy", "template"}; !slices.Equal(fields, want) {
		t.Errorf("of spec it writes %v, want %v", fields, want)
	}
	for _, field := range []string{"selector", "template"} {
		if got, _ := p.Spec[field].(map[string]any); got["$patch"] != "replace" {
			t.Errorf("%s is merged: %v", field, got)
		}
	}
	if !p.IfSame || !p.IfCurrent {
		t.Errorf("it is made on whatever is there: %+v", p)
	}
}

// TestWrittenAfterFound: what is decided after a write to a child that the cache does not show is about the child as it
// was written.
func TestWrittenAfterFound(t *testing.T) {
	hidden := configMap("s")
	hidden.Labels = nil
	b := newBench(t, hidden)
	annotate := func(child *corev1.ConfigMap, name string) Write {
		return Patch{Object: child, Part: name, IfSame: true, Metadata: map[string]any{
			"labels": map[string]any{apply.ManagedByLabel: "bench-operator"}, "annotations": map[string]any{name: "yes"}}}
	}
	var seen *corev1.ConfigMap
	b.kind.Observe = func(_ context.Context, r *Reader, _ *corev1.Service) (string, error) {
		seen = The[*corev1.ConfigMap](r.Children)
		return "", nil
	}
	isFound := false
	b.kind.Decide = func(*corev1.Service, string) (*Plan, error) {
		switch {
		case !isFound:
			isFound = true
			return &Plan{Writes: []Write{Create{Object: configMap("s")}}}, nil
		case seen.Annotations["first"] == "":
			return &Plan{Writes: []Write{annotate(seen, "first")}, Again: true}, nil
		default:
			return &Plan{Writes: []Write{annotate(seen, "second")}}, nil
		}
	}
	if ready, _, err := b.reconcile(); err != nil || ready == nil || ready.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %+v, error %v", ready, err)
	}
	b.expectSent("create ConfigMap", "patch ConfigMap/first", "patch ConfigMap/second", "status Service")
}
