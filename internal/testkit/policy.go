package testkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit/draw"
)

// Policy is what a cluster's owners have admission make of pods and of what makes them, or refuse:
// https://kubernetes.io/docs/reference/access-authn-authz/mutating-admission-policy/.
type Policy struct {
	Name string
	// Templates says that it is for Deployments and StatefulSets, not for pods.
	Templates bool
	// Created says that it is for new objects only, Updated that it is for those that are there already.
	Created, Updated bool
	// Change is the fields that are set, or Patch the JSON patch that is applied; with neither, what Allow says has
	// to hold.
	Change, Patch, Allow string
}

// Policies are those of clusters that break operators.
var Policies = []Policy{
	Mirror,
	{Name: "sidecar-first", Created: true, Patch: `[JSONPatch{op: "add", path: "/spec/containers/0", value: ` + proxy + `}]`},
	{Name: "sidecar-last", Created: true, Patch: `[JSONPatch{op: "add", path: "/spec/containers/-", value: ` + proxy + `}]`},
	{Name: "limits", Created: true, Change: `Object{spec: Object.spec{containers: object.spec.containers.map(c,
		Object.spec.containers{name: c.name, resources: Object.spec.containers.resources{limits: {"cpu": "2"}}})}}`},
	LimitedTemplates,
	{Name: "users", Created: true, Change: `Object{spec: Object.spec{securityContext: Object.spec.securityContext{runAsUser: 1000650000, fsGroup: 1000650000}}}`},
	{Name: "registries", Allow: `object.spec.containers.all(c, c.image.matches("^[a-z]"))`},
	{Name: "labels", Change: `Object{metadata: Object.metadata{labels: {"team": "cluster-owners"}}}`},
}

// Mirror has all images of pods come from another registry.
var Mirror = Policy{Name: "mirror", Change: `Object{spec: Object.spec{containers: object.spec.containers.map(c,
	Object.spec.containers{name: c.name, image: c.image.startsWith("mirror.example.com/") ? c.image : "mirror.example.com/" + c.image})}}`}

// LimitedTemplates has all containers of Deployments and StatefulSets limited.
var LimitedTemplates = Policy{Name: "limited-templates", Templates: true, Change: `Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{
	containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{
		name: c.name, resources: Object.spec.template.spec.containers.resources{limits: {"cpu": "2"}}})}}}}`}

// AddsEnv has a variable added to pods whenever they are changed, of which Kubernetes refuses all that does not keep it.
var AddsEnv = Policy{Name: "adds-env", Updated: true, Patch: `[JSONPatch{op: "add", path: "/spec/containers/0/env",
	value: [Object.spec.containers.env{name: "ADDED", value: "yes"}]}]`}

const proxy = `Object.spec.containers{name: "` + Proxy + `", image: "proxy:1",
	securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false, runAsNonRoot: true,
		capabilities: Object.spec.containers.securityContext.capabilities{drop: ["ALL"]},
		seccompProfile: Object.spec.containers.securityContext.seccompProfile{type: "RuntimeDefault"}},
	resources: Object.spec.containers.resources{requests: {"cpu": "10m", "memory": "16Mi"}}}`

// policyLabel of a namespace is the policy that is enforced there.
const policyLabel = "testkit.example.com/policy"

// firstMutating is the minor version of Kubernetes that serves policies that change objects.
const firstMutating = 36

// Enforce has a policy enforced in a namespace, on a server that can: the test is skipped on one that cannot. It
// returns when it has taken effect.
func (s *APIServer) Enforce(t testing.TB, namespace string, p Policy) {
	t.Helper()
	s.skipWithout(t)
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+policyLabel+`":"`+p.Name+`"}}}`))
	if err := s.client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, label); err != nil {
		t.Fatal(err)
	}
	if err := s.enforce(t.Context(), namespace, p); err != nil {
		t.Fatal(err)
	}
}

// Lift has a policy not enforced in a namespace any more. It returns when that has taken effect.
func (s *APIServer) Lift(t testing.TB, namespace string, p Policy) {
	t.Helper()
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+policyLabel+`":null}}}`))
	if err := s.client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, label); err != nil {
		t.Fatal(err)
	}
	if err := s.awaitEffect(t.Context(), namespace, p, false); err != nil {
		t.Fatal(err)
	}
}

func (s *APIServer) skipWithout(t testing.TB) {
	t.Helper()
	if minor := s.Minor(t); minor < firstMutating {
		t.Skipf("Kubernetes 1.%d has no MutatingAdmissionPolicy", minor)
	}
}

// enforce installs a policy, once for all namespaces with its label, and waits until it has taken effect in this one.
func (s *APIServer) enforce(ctx context.Context, namespace string, p Policy) error {
	for _, obj := range p.objects() {
		if err := s.client.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("enforce policy %s: %w", p.Name, err)
		}
	}
	return s.awaitEffect(ctx, namespace, p, true)
}

// awaitEffect waits until a policy is in effect in a namespace, or is not.
func (s *APIServer) awaitEffect(ctx context.Context, namespace string, p Policy, want bool) error {
	return poll(ctx, time.Minute, func() error {
		here, err := s.admitted(ctx, namespace, p)
		if err != nil {
			return err
		}
		elsewhere, err := s.admitted(ctx, metav1.NamespaceDefault, p)
		if err != nil {
			return err
		}
		if is := here != elsewhere; is != want {
			return fmt.Errorf("policy %s is in effect: %v, want %v", p.Name, is, want)
		}
		return nil
	})
}

// objects are the policy and its binding.
func (p Policy) objects() []client.Object {
	name := "testkit-" + p.Name
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}}
	if p.Created {
		rule.Operations = rule.Operations[:1]
	}
	if p.Updated {
		rule.Operations = rule.Operations[1:]
	}
	if p.Templates {
		rule.APIGroups, rule.Resources = []string{"apps"}, []string{"deployments", "statefulsets"}
	}
	matches := &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}}
	in := &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{policyLabel: p.Name}}}
	if p.Allow != "" {
		return []client.Object{
			&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy: new(admissionv1.Fail), MatchConstraints: matches, Validations: []admissionv1.Validation{{Expression: p.Allow}},
			}},
			&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, MatchResources: in, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			}},
		}
	}
	mutation := admissionv1.Mutation{PatchType: admissionv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionv1.ApplyConfiguration{Expression: p.Change}}
	if p.Patch != "" {
		mutation = admissionv1.Mutation{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: p.Patch}}
	}
	return []client.Object{
		&admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy,
			MatchConstraints: matches, Mutations: []admissionv1.Mutation{mutation},
		}},
		&admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{
			PolicyName: name, MatchResources: in,
		}},
	}
}

// admitted is what admission makes of a pod or a Deployment that is not created, as JSON.
func (s *APIServer) admitted(ctx context.Context, namespace string, p Policy) (string, error) {
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "tried", Labels: map[string]string{"app": "tried"}}
	spec := corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "tried", Image: "TRIED", SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}}},
	}
	pod := &corev1.Pod{ObjectMeta: meta, Spec: spec}
	deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: meta.Labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels}, Spec: spec},
	}}
	var obj client.Object = pod
	if p.Templates {
		obj = deployment
	}
	err := s.tryOut(ctx, obj, p)
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return "refused", nil
	}
	if err != nil {
		return "", err
	}
	pod.Spec.Volumes = nil
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].VolumeMounts = nil // their names are random
	}
	made, err := json.Marshal([]any{pod.Labels, pod.Spec, deployment.Labels, deployment.Spec})
	return string(made), err
}

// tryOut creates an object, or changes one, without a trace.
func (s *APIServer) tryOut(ctx context.Context, obj client.Object, p Policy) error {
	pod, isPod := obj.(*corev1.Pod)
	if !p.Updated || !isPod {
		return s.client.Create(ctx, obj, client.DryRunAll)
	}
	pod.Name, pod.Spec.SchedulingGates = "tried-"+p.Name, []corev1.PodSchedulingGate{{Name: "testkit.example.com/tried"}} // no kubelet's
	if err := s.client.Create(ctx, pod); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"changed"}}}`))
	return errors.Join(s.client.Patch(ctx, pod, label, client.DryRunAll),
		client.IgnoreNotFound(s.client.Delete(ctx, pod.DeepCopy(), client.GracePeriodSeconds(0))))
}

// Under plays scenarios with nothing going wrong, each under every policy that clusters have, as subtests named
// <scenario>-under-<policy>.
func (s *Sweep) Under(t *testing.T, scenarios ...Scenario) {
	t.Helper()
	server := s.prepare(t)
	server.skipWithout(t)
	var runs sync.WaitGroup
	for _, sc := range scenarios {
		for _, p := range Policies {
			if !draw.Takes(sc.Name + "/under-" + p.Name) {
				continue
			}
			under, v := sc, variant{name: "under-" + p.Name, operators: 1}
			under.policy = &p
			runs.Go(func() {
				t.Run(sc.Name+"-under-"+p.Name, func(t *testing.T) {
					s.slots <- struct{}{}
					res := s.play(t.Context(), server, &under, v, plan{})
					<-s.slots
					if res.err != nil {
						t.Error(s.explain(t.Name(), &under, v, plan{}, res))
					}
				})
			})
		}
	}
	runs.Wait()
}
