//go:build apiserver

package sim

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
)

// TestPoliciesDoTheSame: a policy of the simulation makes of a new pod what the one of its name makes of it in a real
// API server, and of a Deployment if it is for those.
func TestPoliciesDoTheSame(t *testing.T) {
	kubernetes, s := testkit.Server(t), server(t)
	c, err := client.New(kubernetes.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	simulated := map[string]func(old, obj client.Object) error{}
	for _, p := range policies {
		simulated[p.name] = p.admit
	}
	simulated[testkit.LimitedTemplates.Name] = simulated["limits"]
	for _, p := range testkit.Policies {
		t.Run(p.Name, func(t *testing.T) {
			namespace := kubernetes.NewNamespace(t)
			kubernetes.Enforce(t, namespace, p)
			for _, image := range []string{"nginx:1", "TRIED:1"} {
				served := client.Object(triedPod(namespace, image))
				if p.Templates {
					served = triedDeployment(namespace, image)
				}
				copied := served.DeepCopyObject().(client.Object)
				want := madeOf(served, c.Create(t.Context(), served, client.DryRunAll))
				s.Admit = func(_ *Kind, old, obj client.Object) error { return simulated[p.Name](old, obj) }
				if got := madeOf(copied, NewClient(s, "test", "test", nil, nil).Create(t.Context(), copied, client.DryRunAll)); got != want {
					t.Errorf("image %s: the simulation makes\n%s\nand the API server\n%s", image, got, want)
				}
			}
		})
	}
}

func triedPod(namespace, image string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tried", Labels: map[string]string{"app": "tried"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "one", Image: image}, {Name: "two", Image: image,
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}}}}}
}

func triedDeployment(namespace, image string) *appsv1.Deployment {
	pod := triedPod(namespace, image)
	return &appsv1.Deployment{ObjectMeta: pod.ObjectMeta, Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
	}}
}

// madeOf is what policies change of an object, or that it is refused, to compare.
func madeOf(obj client.Object, err error) string {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
		return "refused"
	}
	spec := podSpec(obj, true)
	made := fmt.Sprintf("error %v, labels %v", err, obj.GetLabels())
	if s := spec.SecurityContext; s != nil && s.RunAsUser != nil && s.FSGroup != nil {
		made += fmt.Sprintf(", user %d and group %d", *s.RunAsUser, *s.FSGroup)
	}
	for _, c := range spec.Containers {
		made += fmt.Sprintf(", container %s of %s with limits %v and requests %v", c.Name, c.Image, quantities(c.Resources.Limits), quantities(c.Resources.Requests))
	}
	return made
}

func quantities(list corev1.ResourceList) map[corev1.ResourceName]string {
	all := map[corev1.ResourceName]string{}
	for name, quantity := range list {
		all[name] = quantity.String()
	}
	return all
}
