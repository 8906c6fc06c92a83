//go:build apiserver

package at

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/fairlead/internal/testkit"
	"example.com/fairlead/internal/testkit/standalone"
)

// TestGateOfAWithdrawnPodStays: the API server refuses to remove it by an older view, and
// without the mark it is removed.
func TestGateOfAWithdrawnPodStays(t *testing.T) {
	server := testkit.Server(t)
	c, err := client.New(server.Config, client.Options{Scheme: standalone.Scheme(Operator)})
	if err != nil {
		t.Fatal(err)
	}
	namespace := server.NewNamespace(t)
	for name, change := range map[string]podOption{
		"as-made":             func(*corev1.Pod) {},
		"without-annotations": func(pod *corev1.Pod) { pod.Annotations = nil },
	} {
		t.Run(name, func(t *testing.T) {
			pod := desiredPod(anAt(), atExample.gvk, name, noon)
			pod.Namespace = namespace
			pod.OwnerReferences = nil // the At is not there, so the garbage collector would delete the pod
			change(pod)
			if err := c.Create(t.Context(), pod); err != nil {
				t.Fatal(err)
			}
			remove := client.RawPatch(types.JSONPatchType, gatePatch(pod, gateIndex(pod), noon))
			if err := c.Patch(t.Context(), pod.DeepCopy(), remove, client.DryRunAll); err != nil {
				t.Errorf("without the mark: %v", err)
			}
			mark := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"at.example.com/withdrawn":"StartingDeadlineExceeded"}}}`))
			if err := c.Patch(t.Context(), pod.DeepCopy(), mark); err != nil {
				t.Fatal(err)
			}
			if err := c.Patch(t.Context(), pod.DeepCopy(), remove); !apierrors.IsInvalid(err) {
				t.Errorf("with the mark: %v, want that it is refused as invalid", err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
				t.Fatal(err)
			}
			if !isWithdrawn(pod) {
				t.Errorf("gates %v, annotations %v", pod.Spec.SchedulingGates, pod.Annotations)
			}
		})
	}
}
