package webserver

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/fairlead/api/web/v1"
)

// TestAvailable: ready pods alone answer nobody.
func TestAvailable(t *testing.T) {
	a := templateFor()
	theirs := func(seen *observation) {
		aService(0)(seen)
		seen.service().OwnerReferences = nil
	}
	for name, tc := range map[string]struct {
		seen observation
		want string
	}{
		"pods and a Service":      {somethingSeen(aDeployment(a, ""), aService(30010)), reasonServing},
		"no Service":              {somethingSeen(aDeployment(a, "")), reasonNoService},
		"somebody else's Service": {somethingSeen(aDeployment(a, ""), theirs), reasonNoService},
		"no pods":                 {somethingSeen(aService(30010)), reasonNoPods},
	} {
		st := summarize(aWeb(), tc.seen, plan{chosen: choice{template: a, desired: a}}, nil)
		if got := meta.FindStatusCondition(st.Conditions, webv1.ConditionAvailable); got.Reason != tc.want {
			t.Errorf("%s: Available is %s, %s", name, got.Status, got.Reason)
		}
	}
}

// TestCopyLost: a copy that nothing can be made of again is told.
func TestCopyLost(t *testing.T) {
	ws := aWeb(func(ws *webv1.WebServer) { ws.Spec.Content = &webv1.ContentSpec{ConfigMap: "pages", Path: "/www"} })
	one, two := snapshotOf(ws, "content", configMapKind, "1"), snapshotOf(ws, "content", configMapKind, "2")
	old, err := desiredTemplate(ws, inputs{content: one})
	if err != nil {
		t.Fatal(err)
	}
	there := func(seen *observation) {
		seen.copies = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{Name: one.name}}}
	}
	asks := func(s *snapshot) seenOption { return func(seen *observation) { seen.inputs.content = s } }
	for name, tc := range map[string]struct {
		seen observation
		lost bool
	}{
		"there":               {somethingSeen(there, asks(two)), false},
		"about to be written": {somethingSeen(asks(one)), false},
		"put back, and lost":  {somethingSeen(asks(two)), true},
	} {
		if got := copyLost(ws, tc.seen, plan{chosen: choice{template: old}}); (got != nil) != tc.lost {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestACrashLoopIsSteady: the words are the same at every turn of it.
func TestACrashLoopIsSteady(t *testing.T) {
	end := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}
	runs := func(since time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon.Add(-since)}}}
	}
	const words = `container "webserver" crashes again and again, with exit code 3`
	for name, tc := range map[string]struct {
		container corev1.ContainerStatus
		want      string
	}{
		"crashed once":              {corev1.ContainerStatus{State: end}, ""},
		"starts again":              {corev1.ContainerStatus{State: runs(0), LastTerminationState: end, RestartCount: 1}, ""},
		"crashed twice":             {corev1.ContainerStatus{State: end, LastTerminationState: end, RestartCount: 1}, words},
		"waits":                     {corev1.ContainerStatus{State: waits(crashLoop).State, LastTerminationState: end, RestartCount: 1}, words},
		"starts for the third time": {corev1.ContainerStatus{State: runs(time.Second), LastTerminationState: end, RestartCount: 2}, words},
		"is ready":                  {corev1.ContainerStatus{State: runs(time.Second), LastTerminationState: end, RestartCount: 2, Ready: true}, ""},
		"not ready, and runs on":    {corev1.ContainerStatus{State: runs(time.Hour), LastTerminationState: end, RestartCount: 2}, ""},
	} {
		tc.container.Name = serverContainer
		got := ""
		if p := containerTrouble(tc.container, noon); p != nil {
			got = p.message
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
