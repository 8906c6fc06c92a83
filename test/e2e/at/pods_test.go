//go:build e2e

package at

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestAtTellsOfAPodDeletedWhileItRan: also of a command that says that it succeeded
// when it is told to stop.
func TestAtTellsOfAPodDeletedWhileItRan(t *testing.T) {
	for _, code := range []string{"143", "0"} {
		t.Run("exit code "+code, func(t *testing.T) {
			ns := e2e.NewNamespace(t)
			at := newAt(ns, "killed", func(s *atv1alpha1.AtSpec) {
				s.Command = new("trap 'exit " + code + "' TERM; sleep 1000 & wait")
			})
			create(t, at)
			pace.Eventually(t, 20*time.Second, func() error {
				if out, _ := e2e.TryKubectl("", "get", "pod", "killed", "-n", ns); !strings.Contains(out, "Running") {
					return fmt.Errorf("not running: %s", out)
				}
				return nil
			})
			e2e.Kubectl(t, "delete", "pod", "killed", "-n", ns)
			got := waitFor(t, at, atv1alpha1.Failed, "", 30*time.Second)
			if got.Status.Reason != "PodDeleted" && got.Status.Reason != "ResultUnknown" {
				t.Errorf("reason %s", got.Status.Reason)
			}
		})
	}
}

// TestAtTakesItsPodBack: a pod that has lost the operator's label and its owner is
// followed to its end, and is deleted with its At.
func TestAtTakesItsPodBack(t *testing.T) {
	ns := e2e.NewNamespace(t)
	at := newAt(ns, "lost", func(s *atv1alpha1.AtSpec) { s.Command = new("sleep 8") })
	create(t, at)
	pace.Eventually(t, 20*time.Second, func() error {
		if out, _ := e2e.TryKubectl("", "get", "pod", "lost", "-n", ns); !strings.Contains(out, "Running") {
			return fmt.Errorf("not running: %s", out)
		}
		return nil
	})
	e2e.Kubectl(t, "patch", "pod", "lost", "-n", ns, "--type=merge", "-p", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"me"},"ownerReferences":null}}`)
	got := waitFor(t, at, atv1alpha1.Done, "Completed", 30*time.Second)
	pace.Eventually(t, 10*time.Second, func() error {
		if pod := podOf(t, got); !metav1.IsControlledBy(pod, got) || pod.Labels["app.kubernetes.io/managed-by"] != "at-operator" {
			return fmt.Errorf("labels %v, owners %v", pod.Labels, pod.OwnerReferences)
		}
		return nil
	})
}
