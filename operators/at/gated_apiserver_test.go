//go:build apiserver

package at

import (
	"context"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
)

// keptGated has a policy that keeps its gate shut, until it is too late.
func keptGated() testkit.Scenario {
	return testkit.Scenario{
		Name:     "kept-gated",
		EachLate: true,
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			if err := keepGates(ctx, r); err != nil {
				return err
			}
			return r.Client.Create(ctx, story(r, spec(func(s *atv1alpha1.AtSpec) {
				s.Schedule = r.Now().UTC().Format(time.RFC3339Nano)
				s.StartingDeadlineSeconds = new(int64(2))
				s.PodTemplate = &corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{keepGated: "true"}}}
			})))
		},
		Settled: func(ctx context.Context, r *testkit.Run) error {
			if err := settledAs(atv1alpha1.Missed, "StartingDeadlineExceeded")(ctx, r); err != nil {
				return err
			}
			return isGone(ctx, r)
		},
		Check: ranOnce(0),
	}
}

// isGone wants the pod of the first attempt to be gone.
func isGone(ctx context.Context, r *testkit.Run) error {
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "at"}, &corev1.Pod{})
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("the pod that is not to run is still there: %w", err)
	}
	return nil
}

// keepGated is the annotation by which keepGates knows its pods.
const keepGated = "keep-gated"

// keepGates makes the API server refuse to remove a gate, and waits until it does. One
// policy is enough for all runs.
func keepGates(ctx context.Context, r *testkit.Run) error {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: keepGated},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				},
			}}},
			MatchConditions: []admissionv1.MatchCondition{{Name: "marked", Expression: "'" + keepGated + "' in object.metadata.?annotations.orValue({})"}},
			Validations:     []admissionv1.Validation{{Expression: "size(object.spec.?schedulingGates.orValue([])) > 0", Message: "this pod stays gated"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: keepGated},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: keepGated, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	for _, obj := range []client.Object{policy, binding} {
		if err := r.Client.Create(ctx, obj); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	probe := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "probe", Annotations: map[string]string{keepGated: "true"}},
		Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/gate"}},
			Containers:      []corev1.Container{{Name: "c", Image: "i"}},
		},
	}
	if err := r.Client.Create(ctx, probe); err != nil {
		return err
	}
	open := client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/spec/schedulingGates"}]`))
	for !apierrors.IsInvalid(r.Client.Patch(ctx, probe.DeepCopy(), open, client.DryRunAll)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
	return r.Client.Delete(ctx, probe)
}
