//go:build e2e

package at

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestAtNode: an image that cannot be pulled is reported before the run is due, and can be corrected; then a node has
// the image and keeps room, and the run goes there.
func TestAtNode(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	at := newAt(ns, "found", func(s *atv1alpha1.AtSpec) {
		s.Schedule = time.Now().Add(75 * time.Second).UTC().Format(time.RFC3339)
		s.Prepare, s.PrepareSeconds = atv1alpha1.PrepareNode, new(int64(70))
		s.Command, s.OutputBytes, s.Image = new("echo here"), 100, "registry.invalid/report:v1"
	})
	create(t, at)
	waitFor(t, at, atv1alpha1.Pending, "ImagePullBackOff", 45*time.Second)
	if err := c.Patch(context.Background(), at, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"image":"busybox"}}`))); err != nil {
		t.Fatal(err)
	}

	var node string
	pace.Eventually(t, 45*time.Second, func() error {
		placeholders, err := placeholdersOf(ns)
		if err != nil || len(placeholders) != 1 {
			return fmt.Errorf("%d placeholders: %w", len(placeholders), err)
		}
		node = placeholders[0].Spec.NodeName
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(at), at); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(at.Status.Conditions, "Ready")
		if ready == nil || node == "" || !strings.Contains(ready.Message, fmt.Sprintf("Node %q has its images", node)) {
			return fmt.Errorf("%s is %s: %v", at.Name, at.Status.Phase, ready)
		}
		return nil
	})

	at = waitFor(t, at, atv1alpha1.Done, "Completed", 2*time.Minute)
	wantOutput("here\n")(t, at)
	var pod corev1.Pod
	if err := c.Get(context.Background(), client.ObjectKeyFromObject(at), &pod); err != nil {
		t.Fatal(err)
	}
	if a := pod.Spec.Affinity; a == nil || a.NodeAffinity == nil || len(a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 {
		t.Errorf("the pod prefers no node: %+v", a)
	}
	if pod.Spec.NodeName != node {
		t.Errorf("it ran on node %s, and %s had room", pod.Spec.NodeName, node)
	}
	pace.Eventually(t, 20*time.Second, func() error {
		placeholders, err := placeholdersOf(ns)
		if len(placeholders) > 0 {
			err = fmt.Errorf("placeholder %s is there", placeholders[0].Name)
		}
		return err
	})
	t.Logf("it was allowed to run %s after its time", at.Status.Lateness.Duration)
}

func placeholdersOf(namespace string) (found []corev1.Pod, err error) {
	var all corev1.PodList
	if err := c.List(context.Background(), &all, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	for _, pod := range all.Items {
		if strings.Contains(pod.Name, "-node-") {
			found = append(found, pod)
		}
	}
	return found, nil
}
