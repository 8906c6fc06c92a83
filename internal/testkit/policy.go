package testkit

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Policy is what a cluster's owner has admission make of what others write.
type Policy struct {
	// Group, Version and Resource are what is changed.
	Group, Version, Resource string
	// Change is an expression of the fields that are set: https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/.
	Change string
}

// Mirror has all images of pods come from another registry.
var Mirror = Policy{Version: "v1", Resource: "pods", Change: `Object{spec: Object.spec{containers: object.spec.containers.map(c,
	Object.spec.containers{name: c.name, image: c.image.startsWith("mirror.example.com/") ? c.image : "mirror.example.com/" + c.image})}}`}

// LimitedDeployments has all containers of Deployments limited.
var LimitedDeployments = Policy{Group: "apps", Version: "v1", Resource: "deployments", Change: limited}

const limited = `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
	containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{
		name: c.name, resources: Object.spec.template.spec.containers.resources{limits: {"cpu": "2"}}})}}}}`

// firstMutating is the minor version of Kubernetes that serves these policies.
const firstMutating = 36

// Enforce has a policy enforced in a namespace, until the test ends, on a server that can: the test is skipped on one
// that cannot. It returns when it, which is tried on an object that is not created, has taken effect.
func (s *APIServer) Enforce(t testing.TB, namespace string, p Policy, tried client.Object, isChanged func(client.Object) bool) {
	t.Helper()
	if minor := s.Minor(t); minor < firstMutating {
		t.Skipf("Kubernetes 1.%d has no MutatingAdmissionPolicy", minor)
	}
	name := namespace + "-" + p.Resource
	policy := &admissionv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule:       admissionv1.Rule{APIGroups: []string{p.Group}, APIVersions: []string{p.Version}, Resources: []string{p.Resource}},
				},
			}}},
			Mutations: []admissionv1.Mutation{{
				PatchType:          admissionv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: p.Change},
			}},
		},
	}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: name,
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace},
			}},
		},
	}
	for _, obj := range []client.Object{policy, binding} {
		if err := s.client.Create(t.Context(), obj); err != nil {
			t.Fatalf("enforce a policy: %v", err)
		}
		t.Cleanup(func() { _ = s.client.Delete(context.WithoutCancel(t.Context()), obj) })
	}
	err := poll(t.Context(), time.Minute, func() error {
		try := tried.DeepCopyObject().(client.Object)
		if err := s.client.Create(t.Context(), try, client.DryRunAll); err != nil {
			return err
		}
		if !isChanged(try) {
			return fmt.Errorf("the policy for %s has no effect", p.Resource)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
