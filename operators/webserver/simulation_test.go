package webserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/apply"
	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/sim"
)

// TestSimulation plays the stories on a simulated cluster, with whatever can go wrong.
func TestSimulation(t *testing.T) {
	simulation().Run(t, stories(t)...)
}

// TestOnceFailed plays the histories again that showed a mistake.
func TestOnceFailed(t *testing.T) {
	cases := map[string]struct {
		story      testkit.Scenario
		deviations string
	}{
		// An operator that had taken over the Service, and not yet the Deployment, had the
		// Service look for ports by names that the other operator's pods do not have.
		"a port without a name":                {isTakenOver(), "fate5=3"},
		"a port without a name, three leaders": {isTakenOver(), "operators1=2"},
		// The template that a rollback needs was kept, but not yet in the cache: an earlier
		// one took its place, and it was deleted.
		"the wrong template for a rollback":                     {changesItsInputs(aCertificate(t, "", "cert")), "turn166=3"},
		"a failed image instead of the template for a rollback": {isRolledBack(), "meddling61=3,news20=3"},
		// A second leader that saw the bad image, and not yet that it had failed, rolled it
		// out again.
		"a failed image again": {isRolledBack(), "operators1=1,news1=3"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) { simulation().Again(t, tc.story, tc.deviations) })
	}
}

// TestSimulationUnderPolicies plays the stories where admission changes or refuses what is written.
func TestSimulationUnderPolicies(t *testing.T) { simulation().Under(t, stories(t)...) }

// TestSimulationIsDeterministic: what a seed finds can be told, and mended.
func TestSimulationIsDeterministic(t *testing.T) {
	simulation().RequireSame(t, 21, stories(t)...)
}

// TestSimulationFindsPlanted: with a flaw in a copy of the operator the simulation has to
// fail. The flaw: the Service that is taken over may look for ports by their names before
// the Deployment is seen, whose pods have none.
func TestSimulationFindsPlanted(t *testing.T) {
	sim.FindsPlanted(t, "testdata/planted.patch", "TestSimulation/is-taken-over", "the Service looks for port")
}

func simulation() *sim.Simulation {
	return &sim.Simulation{
		Operator:  Operator,
		Histories: 1000,
		CRDs:      []string{"config/crd"},
		Kinds:     []client.Object{&webv1.WebServer{}},
		Always:    alwaysServes,
		Adopts:    changesNoSpec,
		Service: func(obj client.Object) string {
			if ws := obj.(*webv1.WebServer); ws.Status.DesiredReplicas > 0 {
				return serviceName(ws)
			}
			return ""
		},
		Resources: map[string][]string{
			"gateway.networking.k8s.io/v1": {"httproutes HTTPRoute", "gateways Gateway"},
			"route.openshift.io/v1":        {"routes Route"},
		},
		Controllers: func(w *sim.World, _ *testkit.Run) []sim.Controller {
			return []sim.Controller{sim.NewDeployments(w), sim.NewReplicaSets(w), sim.NewEndpoints(w)}
		},
		Meddling: []testkit.Step{
			touched("the WebServer", "web", func() client.Object { return &webv1.WebServer{} }),
			touched("the Deployment", "web", func() client.Object { return &appsv1.Deployment{} }),
			unmarked("the Deployment", "web", func() client.Object { return &appsv1.Deployment{} }),
			unmarked("the Service", "web-service", func() client.Object { return &corev1.Service{} }),
			disowned("the Deployment", "web", func() client.Object { return &appsv1.Deployment{} }),
			disowned("the Service", "web-service", func() client.Object { return &corev1.Service{} }),
			disowned("the PodDisruptionBudget", "web", func() client.Object { return &policyv1.PodDisruptionBudget{} }),
		},
	}
}

// alwaysServes holds for every change: the operator never deletes a Deployment, and what
// follows from its writes never deletes the last pod that is ready. Pods that crash, and
// those of a Deployment that a user deletes, are not its fault. Nor are those of an image
// that a user gave the Deployment: when that is put back just as the last other pod is
// being deleted, Kubernetes counts that pod as ready and deletes these at once.
func alwaysServes(c sim.Change, r *testkit.Run) error {
	if _, is := c.New.(*appsv1.Deployment); is && c.Type == watch.Deleted && c.By != "user" {
		return fmt.Errorf("%s deletes the Deployment", c.By)
	}
	if kept, is := c.New.(*appsv1.ControllerRevision); is && c.Type == watch.Deleted {
		return isNotNeeded(r, kept)
	}
	if service, is := c.New.(*corev1.Service); is && c.Type != watch.Deleted && c.By != "user" {
		return leadsToPods(r, service)
	}
	pod, is := c.New.(*corev1.Pod)
	if !is || c.Old == nil || c.By == "garbage collector" || pod.Spec.Containers[0].Image == strayImage || !serves(c.Old.(*corev1.Pod)) || pod.DeletionTimestamp == nil && c.Type != watch.Deleted {
		return nil
	}
	var pods corev1.PodList
	if err := r.Client.List(context.Background(), &pods, client.InNamespace(r.Namespace)); err != nil {
		return err
	}
	for i := range pods.Items {
		if serves(&pods.Items[i]) || crashed(&pods.Items[i]) {
			return nil
		}
	}
	return fmt.Errorf("%s deletes pod %s, and no other one is ready", c.By, pod.Name)
}

// isNotNeeded returns what is wrong if a template is deleted that a rollback needs.
func isNotNeeded(r *testkit.Run, kept *appsv1.ControllerRevision) error {
	d, err := read(context.Background(), r, "web", &appsv1.Deployment{})
	if err == nil && d.Annotations[goodAnnotation] == kept.Annotations[revisionAnnotation] {
		return fmt.Errorf("the template %s is deleted, which the Deployment is to go back to", kept.Name)
	}
	return nil
}

// leadsToPods returns what is wrong if a Service looks for ports by names that a pod which
// serves does not have: its requests would fail.
func leadsToPods(r *testkit.Run, service *corev1.Service) error {
	var pods corev1.PodList
	if err := r.Client.List(context.Background(), &pods, client.InNamespace(r.Namespace), client.MatchingLabels(service.Spec.Selector)); err != nil {
		return err
	}
	for i := range pods.Items {
		for _, port := range service.Spec.Ports {
			name := port.TargetPort.StrVal
			if name != "" && port.Name == httpName && serves(&pods.Items[i]) && !slices.ContainsFunc(pods.Items[i].Spec.Containers, func(c corev1.Container) bool {
				return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
			}) {
				return fmt.Errorf("the Service looks for port %q, which pod %s does not have", name, pods.Items[i].Name)
			}
		}
	}
	return nil
}

// serves says whether requests are sent to a pod, for as long as it is not asked to leave.
func serves(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// crashed says whether a pod's containers ended by themselves: it may have been ready when
// it was decided that another pod is not needed any more.
func crashed(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(c corev1.ContainerStatus) bool {
		return c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
	})
}

// meddled is something that somebody does to an object, once it is the operator's: what
// another operator made is not recognised without its owner.
func meddled(what, name string, empty func() client.Object, patch func(client.Object) string) testkit.Step {
	when := func(ctx context.Context, r *testkit.Run) error {
		obj, err := read(ctx, r, name, empty())
		if err == nil && obj.GetAnnotations()[managedBy+"/applied"] == "" && !isWeb(obj) {
			err = errors.New("it is not yet the operator's")
		}
		return err
	}
	return testkit.Step{Name: what, When: when, Do: func(ctx context.Context, r *testkit.Run) error {
		obj, err := read(ctx, r, name, empty())
		if err != nil {
			return err
		}
		return r.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(patch(obj))))
	}}
}

func isWeb(obj client.Object) bool { _, is := obj.(*webv1.WebServer); return is }

func touched(what, name string, empty func() client.Object) testkit.Step {
	const annotation = "example.com/touched"
	return meddled("touches "+what, name, empty, func(obj client.Object) string {
		n, _ := strconv.Atoi(obj.GetAnnotations()[annotation])
		return fmt.Sprintf(`{"metadata":{"annotations":{%q:"%d"}}}`, annotation, n+1)
	})
}

func unmarked(what, name string, empty func() client.Object) testkit.Step {
	return meddled("takes the label off "+what, name, empty, func(client.Object) string {
		return fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, apply.ManagedByLabel)
	})
}

func disowned(what, name string, empty func() client.Object) testkit.Step {
	return meddled("takes the owner off "+what, name, empty, func(client.Object) string {
		return `{"metadata":{"ownerReferences":null}}`
	})
}
