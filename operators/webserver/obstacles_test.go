package webserver

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/pods"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit/obstacles"
)

// TestObstacles: whatever keeps a pod from starting is in Ready, whatever is under way.
func TestObstacles(t *testing.T) {
	a, b := templateFor(image("nginx:1")), templateFor(image("nginx:2"))
	scaled := func(ws *webv1.WebServer) { ws.Spec.Replicas = new(int32(4)) }
	proven := good(a, noon.Add(-time.Hour))
	autoscaled := func(ws *webv1.WebServer) {
		ws.Spec.Autoscaling = &webv1.AutoscalingSpec{MinReplicas: 1, MaxReplicas: 9}
	}
	for phase, tc := range map[string]struct {
		ws       *webv1.WebServer
		lastGood podTemplate
		of       podTemplate // what the pod is made of that does not start
		also     string
	}{
		"creating":          {ws: aWeb(image("nginx:1")), of: a},
		"scaling":           {ws: aWeb(image("nginx:1"), proven, scaled), lastGood: a, of: a},
		"scaling by itself": {ws: aWeb(image("nginx:1"), proven, autoscaled), lastGood: a, of: a},
		"healing":           {ws: aWeb(image("nginx:1"), proven), lastGood: a, of: a},
		"rolling out":       {ws: aWeb(image("nginx:2"), proven), lastGood: a, of: b},
		"trying again":      {ws: aWeb(image("nginx:2"), proven, failed(b), retry("now")), lastGood: a, of: b},
		"rolling back":      {ws: aWeb(image("nginx:2"), proven, failed(b)), lastGood: a, of: a, also: "Rolled back from image nginx:2"},
	} {
		cell := func(what string, put func(seen *observation) (says []string)) {
			seen := somethingSeen(aDeployment(tc.of, tc.lastGood, withRevision(tc.of), lacksOne), aService(30010), aPod(tc.of, corev1.ContainerStatus{}))
			for _, words := range append(put(&seen), tc.also) {
				next, err := decide(tc.ws, seen)
				if err != nil {
					t.Fatal(err)
				}
				st := summarize(tc.ws, seen, next, nil)
				c := meta.FindStatusCondition(st.Conditions, status.Ready)
				if c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, words) {
					t.Errorf("%s, %s: Ready is %s %s: %s; want %q", phase, what, c.Status, c.Reason, c.Message, words)
				}
				if isSilent := what == obstacles.SilentNode && phase == "healing"; isSilent && c.Reason != pods.NodeNotResponding {
					t.Errorf("%s, %s: the reason is %s", phase, what, c.Reason)
				}
			}
		}
		for what, put := range obstacles.Of {
			cell(what, func(seen *observation) []string { return put(&seen.pods[0], serverContainer) })
		}
		cell("a quota", func(seen *observation) []string {
			seen.pods = nil
			seen.deployment().Status.Conditions = []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: obstacles.QuotaSays, LastTransitionTime: metav1.Time{Time: noon},
			}}
			return []string{"pods cannot be created", obstacles.QuotaSays}
		})
	}
}

// lacksOne is a Deployment with a pod of the present template that is not available.
func lacksOne(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 }
