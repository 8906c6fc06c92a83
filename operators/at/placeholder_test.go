package at

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	atv1alpha1 "example.com/fairlead/api/at/v1alpha1"
	"example.com/fairlead/operators/at/starter"
)

var byNode = spec(func(s *atv1alpha1.AtSpec) { s.Prepare = atv1alpha1.PrepareNode })

// aPlaceholder is the placeholder of anAt(byNode).
func aPlaceholder(options ...podOption) *corev1.Pod {
	pod := placeholderFor(anAt(byNode), atExample.gvk, "sample-node-1", noon.Add(-placeholderLead))
	pod.UID, pod.CreationTimestamp = "placeholder-uid", metav1.Time{Time: noon.Add(-placeholderLead)}
	pod.Status.Phase = corev1.PodPending
	for _, option := range options {
		option(pod)
	}
	return pod
}

// TestPlaceholderFor: nothing of the template runs in it, and it needs what the run needs.
func TestPlaceholderFor(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	probe := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"own"}}}}
	at := anAt(byNode, spec(func(s *atv1alpha1.AtSpec) {
		s.Image, s.ActiveDeadlineSeconds = "report:v1", new(int64(5))
		s.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "example.com/theirs"}},
			InitContainers:  []corev1.Container{{Name: "fetch", Image: "fetch:v1", Args: []string{"own"}}, {Name: "proxy", Image: "proxy:v1", RestartPolicy: &always, StartupProbe: probe}},
			Containers: []corev1.Container{{Name: commandContainer, Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: probe.Exec}}},
				{Name: "log", Image: "log:v1", Command: []string{"own"}, LivenessProbe: probe, ReadinessProbe: probe}},
		}}
	}))
	pod := placeholderFor(at, atExample.gvk, "sample-node-1", noon)
	if !isPlaceholder(pod) || isPlaceholder(aPod()) || !isMadeFrom(pod, at) || !isOwn(pod, at, atExample.gvk) {
		t.Error("it is not known for what it is")
	}
	if gates := pod.Spec.SchedulingGates; len(gates) != 1 || gates[0].Name != "example.com/theirs" || pod.Spec.ActiveDeadlineSeconds != nil {
		t.Errorf("gates %v, deadline %v", gates, pod.Spec.ActiveDeadlineSeconds)
	}
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	var images []string
	for _, c := range all {
		images = append(images, c.Image)
	}
	if got := strings.Join(images, " "); got != defaultStartImage+" fetch:v1 proxy:v1 report:v1 log:v1" {
		t.Errorf("images %s", got)
	}
	ends := noon.Add(-clearance).Format(time.RFC3339)
	for i, until := range []string{"", "1970-01-01T00:00:00Z", ends, ends, ends} {
		c := all[i]
		if until != "" && !slices.Equal(c.Command, []string{starter.Program, "--at", until}) || c.Args != nil {
			t.Errorf("%s runs %v %v, want until %s", c.Name, c.Command, c.Args, until)
		}
		if c.Lifecycle != nil || c.StartupProbe != nil || c.LivenessProbe != nil || c.ReadinessProbe != nil || !slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == startName }) {
			t.Errorf("%s has hooks or probes, or lacks the program: %+v", c.Name, c)
		}
	}
}

// TestPlaceholder: when there is one, what is said of it, and that nothing waits for it.
func TestPlaceholder(t *testing.T) {
	from := noon.Add(-placeholderLead)
	byHour := spec(func(s *atv1alpha1.AtSpec) { s.PrepareSeconds = new(int64(3600)) })
	running := podOption(func(pod *corev1.Pod) {
		pod.Spec.NodeName = "node"
		containerState(commandContainer, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})(pod)
	})
	failed := podOption(func(pod *corev1.Pod) { pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted" })
	for name, tc := range map[string]struct {
		at      *atv1alpha1.At
		pod, ph *corev1.Pod
		now     time.Time
		want    action
		says    string
		wakeAt  time.Time
	}{
		"too soon":                  {at: anAt(byNode), now: from.Add(-1), want: hold, says: "It runs at", wakeAt: from},
		"in time":                   {at: anAt(byNode), now: from, want: createPlaceholder, says: "It runs at", wakeAt: noon.Add(-lead)},
		"when the user says":        {at: anAt(byNode, byHour), now: noon.Add(-time.Hour), want: createPlaceholder, says: "It runs at"},
		"not for another kind":      {at: anAt(), now: from, want: hold, says: "It runs at"},
		"not twice":                 {at: anAt(byNode), ph: aPlaceholder(), now: from, want: hold, says: "It runs at", wakeAt: noon.Add(-lead)},
		"waits for a node":          {at: anAt(byNode), ph: aPlaceholder(), now: from.Add(slowStart / 3), want: hold, says: "It runs at"},
		"has no image":              {at: anAt(byNode), ph: aPlaceholder(waitingFor("ImagePullBackOff")), now: from.Add(problem), want: hold, says: "The command cannot start"},
		"is there":                  {at: anAt(byNode), ph: aPlaceholder(running), now: from.Add(problem), want: hold, says: `Node "node" has its images`},
		"is there, beside the pod":  {at: anAt(byNode, preparedPod), pod: aPod(), ph: aPlaceholder(running), now: noon.Add(-1), want: hold, says: `Node "node" has its images`},
		"was evicted":               {at: anAt(byNode), ph: aPlaceholder(failed), now: from.Add(problem), want: hold, says: "No node is prepared for the run: its placeholder was ended: Evicted"},
		"of before":                 {at: anAt(byNode, func(at *atv1alpha1.At) { at.Generation = 2 }), ph: aPlaceholder(), now: from, want: removePlaceholder},
		"of one that is suspended":  {at: anAt(byNode, spec(func(s *atv1alpha1.AtSpec) { s.Suspend = true })), ph: aPlaceholder(), now: from, want: removePlaceholder},
		"of one that has begun":     {at: anAt(byNode, claimedAt(noon)), pod: aPod(podRunning), ph: aPlaceholder(running), now: noon, want: removePlaceholder},
		"of one that has finished":  {at: anAt(byNode, finishedAt(atv1alpha1.Done, noon)), ph: aPlaceholder(running), now: noon, want: removePlaceholder},
		"being deleted":             {at: anAt(byNode, claimedAt(noon)), pod: aPod(podRunning), ph: aPlaceholder(deleted), now: noon, want: hold},
		"not before the run is due": {at: anAt(byNode), ph: aPlaceholder(running), now: noon, want: create},
	} {
		t.Run(name, func(t *testing.T) {
			next := decide(tc.at, observation{now: tc.now, pod: tc.pod, placeholder: tc.ph})
			if next.action != tc.want || !strings.Contains(next.news.message, tc.says) {
				t.Errorf("%q, %q; want %q, %q", next.action, next.news.message, tc.want, tc.says)
			}
			if !tc.wakeAt.IsZero() && !next.wakeAt.Equal(tc.wakeAt) {
				t.Errorf("wakes at %s, want %s", next.wakeAt, tc.wakeAt)
			}
		})
	}
}

// TestNodeFor: the run prefers the node of its placeholder, and no other's.
func TestNodeFor(t *testing.T) {
	at := anAt(byNode)
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"none":      {nil, ""},
		"no node":   {aPlaceholder(), ""},
		"a node":    {aPlaceholder(onNode), "node"},
		"failed":    {aPlaceholder(onNode, podFailed("Evicted")), ""},
		"of before": {aPlaceholder(onNode, func(pod *corev1.Pod) { pod.Annotations[generationAnnotation] = "0" }), ""},
	} {
		if got := nodeFor(at, tc.pod); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
	theirs := []corev1.PreferredSchedulingTerm{{Weight: 1}}
	spec := corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: theirs}}}
	preferNode(&spec, "node")
	got := spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if len(got) != 2 || got[1].Weight != 100 || got[1].Preference.MatchFields[0].Values[0] != "node" || len(theirs) != 1 {
		t.Errorf("preferences %+v", got)
	}
	if preferNode(&spec, ""); len(spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 2 {
		t.Error("no node is one, too")
	}
}
