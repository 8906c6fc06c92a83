package memcached

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/operators/memcached/objects"
)

// TestPullTrouble: a pull that fails is reported, stops nothing, and is tried again.
func TestPullTrouble(t *testing.T) {
	old, now := aPool(warm, version("1.6.18"), size(1)), aPool(warm, size(1))
	failed := func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodFailed
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.PullContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 127}}}}
	}
	rejected := func(pod *corev1.Pod) {
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"
	}
	veryLongAgo := func(pod *corev1.Pod) { pod.CreationTimestamp.Time = noon.Add(-5 * time.Minute) }
	const noRoom = "image memcached:1.6.38 cannot be pulled on node n: the node does not take the pod that pulls it: Pod was rejected: Node didn't have enough resource: cpu"
	longAgo := func(pod *corev1.Pod) { pod.CreationTimestamp.Time = noon.Add(-time.Minute) }
	for name, tc := range map[string]struct {
		pull    seenOption
		message string
		removed int
		wake    time.Duration
	}{
		"cannot be pulled": {aPull(now, cannotPull), "image memcached:1.6.38 cannot be pulled on node n", 0, 0},
		"does not start":   {aPull(now, failed), "image memcached:1.6.38 does not start on node n (it needs memcached and /bin/sh): exit code 127", 0, 20 * time.Second},
		"the node is full": {aPull(now, rejected, longAgo), noRoom, 0, 4 * time.Minute},
		"tried once more":  {aPull(now, rejected, veryLongAgo), noRoom, 1, 0},
		"tried again":      {aPull(now, failed, longAgo), "image memcached:1.6.38 does not start on node n (it needs memcached and /bin/sh): exit code 127", 1, 0},
	} {
		next, err := decide(now, somethingSeen(aStatefulSet(now), aServer(old, 0), tc.pull))
		if err != nil {
			t.Fatal(err)
		}
		if next.Problem == nil || next.Problem.Message != tc.message || !next.Problem.Retriable {
			t.Errorf("%s: %+v", name, next.Problem)
		}
		change := patchOf(next, "change")
		if change != nil || next.Upgrade.Server != "" || count[loop.Delete](next) != tc.removed || next.WakeAfter != tc.wake {
			t.Errorf("%s: change %v, %d removed, wake after %v", name, change, count[loop.Delete](next), next.WakeAfter)
		}
	}
}

// TestPullTroubleStays: the problem of a pull is reported until the next try has shown
// something else.
func TestPullTroubleStays(t *testing.T) {
	old, now := aPool(warm, version("1.6.18"), size(1)), aPool(warm, size(1))
	const failed = "image memcached:1.6.38 does not start on node n (it needs memcached and /bin/sh): exit code 127"
	here := &v1alpha1.FailedPull{Image: "memcached:1.6.38", Node: "n", Message: "exit code 127"}
	full := &v1alpha1.FailedPull{Image: "memcached:1.6.38", Node: "n", Message: "the node does not take the pod that pulls it: no CPU"}
	elsewhere := &v1alpha1.FailedPull{Image: "memcached:1.6.38", Node: "n2", Message: "exit code 127"}
	for name, tc := range map[string]struct {
		was  *v1alpha1.FailedPull
		pull []seenOption
		want string
	}{
		"it is to be made":    {here, nil, failed},
		"it starts":           {here, []seenOption{aPull(now)}, failed},
		"it cannot be pulled": {here, []seenOption{aPull(now, cannotPull)}, "image memcached:1.6.38 cannot be pulled on node n"},
		"it is there":         {here, []seenOption{aPull(now, pulled(""))}, ""},
		"that was elsewhere":  {elsewhere, []seenOption{aPull(now)}, ""},
		"nothing has failed":  {nil, nil, ""},
		"its node was full":   {full, nil, "image memcached:1.6.38 cannot be pulled on node n: " + full.Message},
	} {
		now.Status.Upgrade = &v1alpha1.UpgradeStatus{FailedPull: tc.was}
		next, err := decide(now, somethingSeen(append(tc.pull, aStatefulSet(now), aServer(old, 0))...))
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if next.Problem != nil {
			got = next.Problem.Message
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
		if kept := next.Upgrade.FailedPull != nil; kept != (tc.want == failed || tc.was == full) {
			t.Errorf("%s: failedPull in status: %v", name, kept)
		}
	}
}

// TestMirror: admission has replaced the images of all pods with those of a mirror. What was requested says
// whether an image is another one; what is written is what admission makes of it.
func TestMirror(t *testing.T) {
	mirrored := func(pod *corev1.Pod) {
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].Image = "mirror.example.com/" + pod.Spec.Containers[i].Image
		}
	}
	old := aPool(warm, version("1.6.18"), size(1), exporting("e:1"))
	for name, tc := range map[string]struct {
		to    []mcOption
		pulls int    // pods that are to be created
		image string // in the patch
	}{
		"nothing changes": {[]mcOption{version("1.6.18")}, 0, ""},
		"the threads":     {[]mcOption{version("1.6.18"), threads(8)}, 0, ""},
		"the image":       {nil, 1, "mirror.example.com/memcached:1.6.38"},
	} {
		options := append([]mcOption{warm, size(1), exporting("e:1")}, tc.to...)
		now := aPool(append(options, announced(v1alpha1.Warm, "cache-0"))...)
		seen := []seenOption{aStatefulSet(now), aServer(old, 0, mirrored)}
		next, err := decide(now, somethingSeen(seen...))
		if err != nil {
			t.Fatal(err)
		}
		if n := count[loop.Create](next); n != tc.pulls {
			t.Errorf("%s: %d pulls, want %d", name, n, tc.pulls)
		}
		if tc.pulls > 0 {
			if next, err = decide(now, somethingSeen(append(seen, aPull(now, mirrored, pulled("")))...)); err != nil {
				t.Fatal(err)
			}
		}
		patch := patchOf(next, "change")
		if patch == nil {
			if name != "nothing changes" {
				t.Errorf("%s: it waits for %q", name, next.Waits)
			}
			continue
		}
		got := ""
		if patch.Spec != nil {
			got = patch.Spec["containers"].([]any)[0].(map[string]any)["image"].(string)
		}
		if got != tc.image || name == "nothing changes" {
			t.Errorf("%s: the image is changed to %q, want %q", name, got, tc.image)
		}
	}
}

// TestPullBesideASidecar: what else is in the pod goes on for ever, and it has pulled the image, or failed.
func TestPullBesideASidecar(t *testing.T) {
	ended := func(code int32) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodRunning
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "proxy", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
				{Name: objects.PullContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}},
			}
		}
	}
	old, now := aPool(warm, version("1.6.18"), size(1)), aPool(warm, size(1), announced(v1alpha1.Warm, "cache-0"))
	for code, isPulled := range map[int32]bool{0: true, 127: false} {
		next, err := decide(now, somethingSeen(aStatefulSet(now), aServer(old, 0), aPull(now, ended(code))))
		if err != nil {
			t.Fatal(err)
		}
		if change := patchOf(next, "change"); (change != nil) != isPulled || (next.Problem == nil) != isPulled {
			t.Errorf("exit code %d: change %v, problem %+v", code, change, next.Problem)
		}
	}
}

// TestPullTakesLabels: what users have set on their pods is on the pods that pull, too.
func TestPullTakesLabels(t *testing.T) {
	mc := aPool(warm, func(mc *v1alpha1.Memcached) {
		mc.Spec.PodTemplate = &corev1.PodTemplateSpec{}
		mc.Spec.PodTemplate.Labels = map[string]string{"mesh": "off", objects.AppLabel: "mine"}
		mc.Spec.PodTemplate.Annotations = map[string]string{"mesh/inject": "false"}
	})
	pod := objects.PullPod(mc, "n", mustTemplate(mc))
	if pod.Labels["mesh"] != "off" || pod.Labels[objects.AppLabel] != objects.PullApp || pod.Annotations["mesh/inject"] != "false" || pod.Annotations[objects.RevisionAnnotation] == "" {
		t.Errorf("labels %v, annotations %v", pod.Labels, pod.Annotations)
	}
}

// TestPullsOnAFullNode: a pod that is bound to a node is rejected by it for whatever it requests
// and the node has not, so the pull requests nothing, and says so: a quota may require that.
func TestPullsOnAFullNode(t *testing.T) {
	mc := aPool(warm)
	resources := objects.PullPod(mc, "n", mustTemplate(mc)).Spec.Containers[0].Resources
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, says := resources.Requests[name]
		if limit := resources.Limits[name]; !says || !request.IsZero() || limit.IsZero() {
			t.Errorf("%s: requests %s (%v), limit %s", name, request.String(), says, limit.String())
		}
	}
}
