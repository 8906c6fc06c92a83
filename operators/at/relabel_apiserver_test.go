//go:build apiserver

package at

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestRelabelledPods has an admission policy that rewrites the label of every pod,
// once only when it is created, and once with every write.
func TestRelabelledPods(t *testing.T) {
	server := testkit.Server(t)
	if minor := server.Minor(t); minor < 36 {
		t.Skipf("Kubernetes 1.%d has no MutatingAdmissionPolicy of version v1", minor)
	}
	c, err := client.New(server.Config, client.Options{Scheme: standalone.Scheme(Operator)})
	if err != nil {
		t.Fatal(err)
	}
	for name, operations := range map[string][]admissionv1.OperationType{
		"on-create": {admissionv1.Create},
		"always":    {admissionv1.Create, admissionv1.Update},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := server.NewNamespace(t)
			relabel(t, c, namespace, operations)
			kubelet, err := testkit.StartKubelet(t.Context(), server.Config, namespace, func(*corev1.Pod) testkit.Outcome {
				return testkit.Succeeds(100 * time.Millisecond)
			})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			ctx, stop := context.WithCancel(t.Context())
			go func() { ended <- standalone.Start(Operator)(ctx, server.Config, namespace) }()
			defer func() {
				stop()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			}()
			at := anAt(spec(func(s *atv1alpha1.AtSpec) { s.Schedule = "2021-09-09T07:05:59Z" }))
			at.Namespace, at.Name, at.UID, at.Status = namespace, "at", "", atv1alpha1.AtStatus{}
			if err := c.Create(t.Context(), at); err != nil {
				t.Fatal(err)
			}
			pace.Eventually(t, time.Minute, func() error {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(at), at); err != nil {
					return err
				}
				if at.Status.Phase != atv1alpha1.Done {
					return fmt.Errorf("the At is %s %s", at.Status.Phase, at.Status.Reason)
				}
				return nil
			})
			if starts := kubelet.Starts(); len(starts) != 1 || at.Status.Attempts != 1 {
				t.Errorf("%d starts, %d attempts", len(starts), at.Status.Attempts)
			}
		})
	}
}

// relabel makes the API server rewrite the label of the pods of a namespace, and
// waits until it does.
func relabel(t *testing.T, c client.Client, namespace string, operations []admissionv1.OperationType) {
	t.Helper()
	name := "relabel-" + namespace
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
				ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: operations,
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations: []admissionv1.Mutation{{
				PatchType: admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{
					Expression: `Object{metadata: Object.metadata{labels: {"app.kubernetes.io/managed-by": "platform"}}}`,
				},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	for _, obj := range []client.Object{policy, binding} {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), obj) })
	}
	pace.Eventually(t, time.Minute, func() error {
		probe := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		}
		if err := c.Create(t.Context(), probe, client.DryRunAll); err != nil {
			return err
		}
		if len(probe.Labels) == 0 {
			return fmt.Errorf("the policy does not work yet")
		}
		return nil
	})
}
