//go:build e2e

package at

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/internal/testkit/pace"
	"example.com/fairlead/test/e2e"
)

// TestAtProcess: a process that waits becomes the command when it is due, in an image without a shell, too. What is
// changed before that takes effect, and a pod that is deleted before that is replaced.
func TestAtProcess(t *testing.T) {
	ns := e2e.NewNamespace(t, "pod-security.kubernetes.io/enforce=restricted")
	first := func(s *atv1alpha1.AtSpec) { s.Command = new("echo first") }
	for name, tc := range map[string]struct {
		spec func(*atv1alpha1.AtSpec)
		then func(*testing.T, *atv1alpha1.At) // once it is created
	}{
		"exact": {
			func(s *atv1alpha1.AtSpec) {
				s.Command, s.ActiveDeadlineSeconds = new("date +%s; sleep 2; exit 7"), new(int64(15)) // less than it waits
			},
			func(t *testing.T, at *atv1alpha1.At) {
				pod := waitingPod(t, at)
				at = waitFor(t, at, atv1alpha1.Failed, "CommandFailed", time.Minute)
				wantExitCode(7)(t, at)
				if at.Status.PodUID != pod.UID || at.Status.Attempts != 1 {
					t.Errorf("pod %s ran, in %d attempts, and %s had waited", at.Status.PodUID, at.Status.Attempts, pod.UID)
				}
				began, err := strconv.ParseInt(strings.TrimSpace(at.Status.Output), 10, 64)
				if late := began - at.Status.ScheduledTime.Unix(); err != nil || late < 0 || late > pace.Seconds(1) {
					t.Errorf("its command began %d s after its time: output %q, %v", late, at.Status.Output, err)
				}
			},
		},
		"edited": {first, func(t *testing.T, at *atv1alpha1.At) {
			stale := waitingPod(t, at)
			change(t, at, `{"command":"echo second"}`)
			at = waitFor(t, at, atv1alpha1.Done, "Completed", time.Minute)
			wantOutput("second\n")(t, at)
			if at.Status.PodUID == stale.UID {
				t.Error("the pod of before the change ran")
			}
		}},
		"edited-without-a-node": {
			func(s *atv1alpha1.AtSpec) {
				first(s)
				s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: map[string]string{"no-such": "node"}}}
			},
			func(t *testing.T, at *atv1alpha1.At) {
				waitFor(t, at, atv1alpha1.Pending, "Unschedulable", 45*time.Second)
				change(t, at, `{"podTemplate":null,"command":"echo second"}`)
				wantOutput("second\n")(t, waitFor(t, at, atv1alpha1.Done, "Completed", time.Minute))
			},
		},
		"suspended": {first, func(t *testing.T, at *atv1alpha1.At) {
			waitingPod(t, at)
			change(t, at, `{"suspend":true}`)
			waitFor(t, at, atv1alpha1.Pending, "Suspended", 20*time.Second)
			time.Sleep(time.Until(at.Status.ScheduledTime.Add(2 * time.Second)))
			waitFor(t, at, atv1alpha1.Pending, "Suspended", 0)
			if err := c.Get(context.Background(), client.ObjectKeyFromObject(at), &corev1.Pod{}); !apierrors.IsNotFound(err) {
				t.Errorf("its pod is there after its time: %v", err)
			}
		}},
		"replaced": {first, func(t *testing.T, at *atv1alpha1.At) {
			stale := waitingPod(t, at)
			e2e.Kubectl(t, "delete", "pod", at.Name, "-n", ns, "--wait=false")
			at = waitFor(t, at, atv1alpha1.Done, "Completed", time.Minute)
			if at.Status.PodUID == stale.UID {
				t.Error("the deleted pod ran")
			}
		}},
		"without-a-shell": {
			func(s *atv1alpha1.AtSpec) { s.Args = []string{"/fairlead", "version"} },
			func(t *testing.T, at *atv1alpha1.At) {
				// The operator's own image has no shell, and is on the node.
				change(t, at, fmt.Sprintf(`{"image":%q}`, waitingPod(t, at).Spec.InitContainers[0].Image))
				at = waitFor(t, at, atv1alpha1.Done, "Completed", time.Minute)
				if !strings.HasPrefix(at.Status.Output, "fairlead ") {
					t.Errorf("output %q", at.Status.Output)
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := newAt(ns, name, func(s *atv1alpha1.AtSpec) {
				s.Schedule, s.Prepare = time.Now().Add(35*time.Second).UTC().Format(time.RFC3339), atv1alpha1.PrepareProcess
				s.OutputBytes = 100
				tc.spec(s)
			})
			create(t, at)
			tc.then(t, at)
		})
	}
}

func change(t *testing.T, at *atv1alpha1.At, spec string) {
	t.Helper()
	if err := c.Patch(context.Background(), at, client.RawPatch(types.MergePatchType, []byte(`{"spec":`+spec+`}`))); err != nil {
		t.Fatal(err)
	}
}

// waitingPod waits until the process of an At waits, and returns its pod.
func waitingPod(t *testing.T, at *atv1alpha1.At) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	pace.Eventually(t, 30*time.Second, func() error {
		if err := c.Get(context.Background(), client.ObjectKeyFromObject(at), at); err != nil {
			return err
		}
		ready := meta.FindStatusCondition(at.Status.Conditions, "Ready")
		if ready == nil || !strings.Contains(ready.Message, "its process waits for that on node") {
			return fmt.Errorf("%s is %s: %v", at.Name, at.Status.Phase, ready)
		}
		return c.Get(context.Background(), client.ObjectKeyFromObject(at), pod)
	})
	if pod.UID != at.Status.PreparedPodUID {
		t.Fatalf("pod %s waits, and the prepared one is %s", pod.UID, at.Status.PreparedPodUID)
	}
	return pod
}
