package webserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
)

// adopting is a WebServer that adopts what kubectl create deployment and kubectl expose
// have made.
func adopting(ws *webv1.WebServer) {
	ws.Spec.Adopt = &webv1.AdoptSpec{Selector: map[string]string{"app": "web"}, Service: "web"}
	ws.Spec.Service = &webv1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Port: 80}
}

// mayBeAdopted is what a user says of an object that the WebServer may take over.
func mayBeAdopted() map[string]string { return map[string]string{webv1.AnnotationAdoptBy: "web"} }

// createdByHand is what kubectl create deployment web --image=nginx:1 makes, what a
// restricted namespace requires, and what a WebServer may adopt.
func createdByHand(namespace string) *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels, Annotations: mayBeAdopted()},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers: []corev1.Container{{
						Name: "nginx", Image: "nginx:1",
						SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
					}},
				},
			},
		},
	}
}

// exposedByHand is what kubectl expose deployment web --port=80 makes, and what a WebServer may adopt.
func exposedByHand(namespace string) *corev1.Service {
	labels := map[string]string{"app": "web"}
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", Labels: labels, Annotations: mayBeAdopted()},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: labels,
			Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(80)}}},
	}
}

// isAdopted begins with what a user made by hand. Nothing restarts until the image changes.
func isAdopted() testkit.Scenario {
	return testkit.Scenario{
		Name: "is-adopted",
		Pods: func(*corev1.Pod) testkit.Outcome { return testkit.Stays() },
		Before: func(ctx context.Context, r *testkit.Run) error {
			return errors.Join(
				client.IgnoreAlreadyExists(r.Client.Create(ctx, createdByHand(r.Namespace))),
				client.IgnoreAlreadyExists(r.Client.Create(ctx, exposedByHand(r.Namespace))))
		},
		// The budget would be written before or after the Deployment, which its controller writes at the same time.
		Arrange: arranged(adopting, func(ws *webv1.WebServer) { ws.Spec.Disruption = &webv1.DisruptionSpec{Enabled: new(false)} }),
		Steps: []testkit.Step{
			{Name: "the resources that admission gave the Deployment", When: adoptedOrRefused, Do: hasItsResources},
			{Name: "another image", When: adoptedAsItIs, Do: patched(`{"spec":{"image":"nginx:2"}}`)},
		},
		Settled: isReady(reasonReady, "nginx:2"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			d, err := read(ctx, r, "web", &appsv1.Deployment{})
			if err != nil {
				return err
			}
			if c := d.Spec.Template.Spec.Containers; len(c) != 1 || c[0].Name != serverContainer || d.Spec.Template.Labels["app"] != "web" {
				return fmt.Errorf("the pods have labels %v and containers %+v", d.Spec.Template.Labels, c)
			}
			if s, err := read(ctx, r, "web", &corev1.Service{}); err != nil || s.Spec.Selector["app"] != "web" || len(s.Spec.Ports) != 1 {
				return fmt.Errorf("the Service leads to %v by %v: %w", s.Spec.Selector, s.Spec.Ports, err)
			}
			ws, err := current(ctx, r)
			if err == nil && meta.FindStatusCondition(ws.Status.Conditions, webv1.ConditionAdopted) != nil {
				err = errors.New("it still says that the pods were taken over")
			}
			return errors.Join(err, nothingTwice(1)(ctx, r))
		},
	}
}

// adoptedOrRefused holds when the operator has said whether the WebServer describes what is there.
func adoptedOrRefused(ctx context.Context, r *testkit.Run) error {
	ws, err := current(ctx, r)
	if err == nil && meta.FindStatusCondition(ws.Status.Conditions, webv1.ConditionAdopted) == nil {
		err = errors.New("it has not looked yet")
	}
	return err
}

// hasItsResources has the WebServer request what the Deployment does, as it is told to where that is refused.
func hasItsResources(ctx context.Context, r *testkit.Run) error {
	d, err := read(ctx, r, "web", &appsv1.Deployment{})
	if err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"resources": d.Spec.Template.Spec.Containers[0].Resources}})
	if err != nil {
		return err
	}
	return patched(string(patch))(ctx, r)
}

// adoptedAsItIs holds when all is the WebServer's, and the pod is the one that was there.
func adoptedAsItIs(ctx context.Context, r *testkit.Run) error {
	if err := isReady(reasonReady, "nginx:1")(ctx, r); err != nil {
		return err
	}
	ws, err := current(ctx, r)
	if err != nil {
		return err
	}
	s, err := read(ctx, r, "web", &corev1.Service{})
	if err != nil {
		return err
	}
	if !meta.IsStatusConditionTrue(ws.Status.Conditions, webv1.ConditionAdopted) || !isOwned(s, ws) {
		return errors.New("not adopted yet")
	}
	if starts := r.Kubelet.Starts(); len(starts) != 1 {
		return fmt.Errorf("%d pods were started, want 1", len(starts))
	}
	return nil
}

// changesNoSpec says whether a WebServer that is to adopt an object, and may, becomes its controller,
// and leaves its spec as it is.
func changesNoSpec(c sim.Change, r *testkit.Run) bool {
	ws, err := current(context.Background(), r)
	if err != nil || ws.Spec.Adopt == nil || c.Old.GetAnnotations()[webv1.AnnotationAdoptBy] != ws.Name || !metav1.IsControlledBy(c.New, ws) {
		return false
	}
	switch before := c.Old.(type) {
	case *appsv1.Deployment:
		return equality.Semantic.DeepEqual(before.Spec, c.New.(*appsv1.Deployment).Spec)
	case *corev1.Service:
		return equality.Semantic.DeepEqual(before.Spec, c.New.(*corev1.Service).Spec)
	}
	return false
}
