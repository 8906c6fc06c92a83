package webserver

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/names"
)

func TestChoose(t *testing.T) {
	a, b, c := templateFor(image("nginx:a")), templateFor(image("nginx:b")), templateFor(image("nginx:c"))
	none := podTemplate{}
	adopted := func(revision string) seenOption {
		return func(seen *observation) {
			aDeployment(none, none)(seen)
			if revision != "" {
				seen.deployment().Annotations[adoptedAnnotation] = revision
			}
		}
	}

	cases := map[string]struct {
		ws      *webv1.WebServer
		seen    observation
		desired podTemplate
		want    choice
	}{
		"nothing there: what is asked for": {
			ws: aWeb(), seen: somethingSeen(), desired: a, want: choice{template: a}},
		"nothing changed": {
			ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(a, none)), desired: a, want: choice{template: a}},
		"another one: the good one is kept": {
			ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(a, none)), desired: b, want: choice{template: b, lastGood: a}},
		"another one, before this one was good": {
			ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a)), desired: c, want: choice{template: c, lastGood: a}},
		"another one, and none was ever good": {
			ws: aWeb(), seen: somethingSeen(aDeployment(a, none)), desired: b, want: choice{template: b}},
		"failed: put back": {
			ws: aWeb(good(a, noon), failed(b)), seen: somethingSeen(aDeployment(b, a, late)), desired: b, want: choice{template: a, lastGood: a, rolledBack: true}},
		"put back: stays so": {
			ws: aWeb(good(a, noon), failed(b)), seen: somethingSeen(aDeployment(a, a)), desired: b, want: choice{template: a, lastGood: a, rolledBack: true}},
		"put back, and scaled: stays so": {
			ws: aWeb(good(a, noon), failed(b), func(ws *webv1.WebServer) { ws.Spec.Replicas = new(int32(9)) }), seen: somethingSeen(aDeployment(a, a)), desired: b, want: choice{template: a, lastGood: a, rolledBack: true}},
		"put back by version 0.0.2: stays so": {
			ws: aWeb(good(a, noon), failed(b), func(ws *webv1.WebServer) { ws.Status.FailedRollout.DeadlineSeconds = 0 }), seen: somethingSeen(aDeployment(a, a)), desired: b, want: choice{template: a, lastGood: a, rolledBack: true}},
		"put back, and another deadline: tried again": {
			ws: aWeb(good(a, noon), failed(b), deadline(600)), seen: somethingSeen(aDeployment(a, a)), desired: b, want: choice{template: b, lastGood: a}},
		"put back, and another try is asked for": {
			ws: aWeb(good(a, noon), failed(b), retry("now")), seen: somethingSeen(aDeployment(a, a)), desired: b, want: choice{template: b, lastGood: a}},
		"put back after another try: stays so": {
			ws: aWeb(good(a, noon), retry("now"), failed(b)), seen: somethingSeen(aDeployment(a, a)), desired: b, want: choice{template: a, lastGood: a, rolledBack: true}},
		"put back, and the annotation is removed: stays so": {
			ws: aWeb(good(a, noon), retry("now"), failed(b), retry("")), seen: somethingSeen(aDeployment(a, a)), desired: b, want: choice{template: a, lastGood: a, rolledBack: true}},
		"put back, and not yet to be tried again": {
			ws: aWeb(good(a, noon), failed(b), retriedAt(0, noon.Add(time.Second))), seen: somethingSeen(aDeployment(a, a)), desired: b, want: choice{template: a, lastGood: a, rolledBack: true}},
		"put back, and the time has come to try again": {
			ws: aWeb(good(a, noon), failed(b), retriedAt(0, noon)), seen: somethingSeen(aDeployment(a, a)), desired: b, want: choice{template: b, lastGood: a}},
		"failed, and became ready before it was put back": {
			ws: aWeb(good(a, noon), failed(b)), seen: somethingSeen(aDeployment(b, a)), desired: b, want: choice{template: b, lastGood: a}},
		"failed, and is not ready yet": {
			ws: aWeb(good(a, noon), failed(b)), seen: somethingSeen(aDeployment(b, a, late)), desired: b, want: choice{template: a, lastGood: a, rolledBack: true}},
		"put back, and the spec changes": {
			ws: aWeb(good(a, noon), failed(b)), seen: somethingSeen(aDeployment(a, a)), desired: c, want: choice{template: c, lastGood: a}},
		"an input is missing: what there is stays": {
			ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(a, none)), want: choice{template: a}},
		"an input is missing, and nothing there": {
			ws: aWeb(), seen: somethingSeen(), want: choice{}},
		"put back, and deleted: what was good is made anew": {
			ws: aWeb(good(a, noon), failed(b)), seen: somethingSeen(keeps(a)), desired: b, want: choice{template: a, lastGood: a, rolledBack: true}},
		"on its way, and deleted: what was good comes first": {
			ws: aWeb(good(a, noon)), seen: somethingSeen(keeps(a)), desired: b, want: choice{template: a, lastGood: a}},
		"good, and deleted: the same": {
			ws: aWeb(good(b, noon)), seen: somethingSeen(keeps(a)), desired: b, want: choice{template: b, lastGood: a}},
		"an input is missing, and the Deployment is deleted": {
			ws: aWeb(good(a, noon)), seen: somethingSeen(keeps(a)), want: choice{template: a, lastGood: a}},
		"the annotation with the good one is lost": {
			ws: aWeb(good(b, noon)), seen: somethingSeen(aDeployment(b, none), keeps(a)), desired: b, want: choice{template: b, lastGood: a}},
		"the annotation with the template is lost": {
			ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(none, none, withRevision(a))), desired: a, want: choice{template: a}},
		"another operator's: left as it is": {
			ws: aWeb(), seen: somethingSeen(adopted("")), desired: a, want: choice{adopted: true, adoptedFor: a.revision}},
		"another operator's, known": {
			ws: aWeb(), seen: somethingSeen(adopted(a.revision)), desired: a, want: choice{adopted: true, adoptedFor: a.revision}},
		"another operator's, and the spec changes": {
			ws: aWeb(), seen: somethingSeen(adopted(a.revision)), desired: b,
			want: choice{template: b, lastGood: templateOf(corev1.PodTemplateSpec{})}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.desired = tc.desired
			got := choose(tc.ws, tc.seen, tc.desired)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(choice{}, podTemplate{})); diff != "" {
				t.Errorf("choose() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeepsTheGoodTemplate: a rollout begins with what it may have to go back to being
// kept, and without that there is none. One of 0.0.2 is kept as soon as it is seen.
func TestKeepsTheGoodTemplate(t *testing.T) {
	a, b := templateFor(image("nginx:a")), templateFor(image("nginx:b"))
	ofBefore := func(seen *observation) { seen.good, seen.revisions = a, nil }
	for name, tc := range map[string]struct {
		seen         observation
		writes, then []string
	}{
		"a rollout begins":         {somethingSeen(aDeployment(a, podTemplate{})), []string{"ControllerRevision", "Service", "PodDisruptionBudget"}, []string{"Deployment"}},
		"it is kept":               {somethingSeen(aDeployment(b, a)), []string{"Service", "Deployment", "PodDisruptionBudget"}, nil},
		"0.0.2 has kept it":        {somethingSeen(aDeployment(b, a), ofBefore), []string{"ControllerRevision", "Service", "PodDisruptionBudget"}, []string{"Deployment"}},
		"a new WebServer":          {somethingSeen(), []string{"Service", "Deployment", "PodDisruptionBudget"}, nil},
		"another one is kept, too": {somethingSeen(aDeployment(a, podTemplate{}), keeps(b)), []string{"ControllerRevision", "Service", "PodDisruptionBudget"}, []string{"Deployment"}},
	} {
		next, err := decide(aWeb(image("nginx:b"), good(a, noon)), tc.seen)
		if err != nil {
			t.Fatal(err)
		}
		kinds := func(writes []loop.Write) (all []string) {
			for _, w := range writes {
				all = append(all, loop.KindOf(loop.ObjectOf(w)))
			}
			return all
		}
		if diff := cmp.Diff(tc.writes, kinds(next.Writes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(tc.then, kinds(next.Then)); diff != "" {
			t.Errorf("%s, and then (-want +got):\n%s", name, diff)
		}
	}
}

func TestJudge(t *testing.T) {
	a, b := templateFor(image("nginx:a")), templateFor(image("nginx:b"))
	pull := func(template podTemplate) seenOption { return aPod(template, waits("ImagePullBackOff")) }
	again := func(retries int32, in time.Duration, failed *webv1.FailedRollout) *webv1.FailedRollout {
		if failed.Retries = retries; in > 0 {
			failed.RetryTime = &metav1.Time{Time: noon.Add(in)}
		}
		return failed
	}
	failure := func(reason, message string) *webv1.FailedRollout {
		return &webv1.FailedRollout{Revision: b.revision, Image: "nginx:b", Reason: reason, Message: message, Time: metav1.Time{Time: noon}, DeadlineSeconds: 60}
	}
	crashes := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: crashLoop}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}, RestartCount: 2}

	restarted := corev1.ContainerStatus{Ready: true, RestartCount: 2, LastTerminationState: crashes.LastTerminationState,
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon}}}}
	pulls := func(d *appsv1.Deployment) { d.Status.UnavailableReplicas = 1 }
	failedOn := func(value string, failed *webv1.FailedRollout) *webv1.FailedRollout {
		failed.Retry = retryOf(aWeb(retry(value)))
		return failed
	}

	cases := map[string]struct {
		ws      *webv1.WebServer
		seen    observation
		desired podTemplate
		want    *webv1.FailedRollout
	}{
		"on its way": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a), pull(b)), desired: b},
		"too late":   {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late), pull(b)), desired: b, want: failure("ImagePullBackOff", `not healthy within 60 s: the image "nginx:b" cannot be pulled`)},
		"too late, nobody knows why": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, lateSince(noon.Add(-15*time.Second))), unready(b, -time.Minute)), desired: b,
			want: again(0, 10*time.Minute, failure("ProgressDeadlineExceeded", "not healthy within 60 s: the pods did not become ready"))},
		"too late once more, and nobody knows why": {ws: aWeb(good(a, noon), failed(b), retriedAt(0, noon)), seen: somethingSeen(aDeployment(b, a, lateSince(noon.Add(-15*time.Second))), unready(b, -time.Minute)), desired: b,
			want: again(1, 0, failure("ProgressDeadlineExceeded", "not healthy within 60 s: the pods did not become ready"))},
		"too late, as was just noticed: nodes may have been silent": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, lateSince(noon.Add(-14*time.Second))), unready(b, -time.Hour)), desired: b},
		"it started late":       {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, lateSince(noon.Add(-time.Hour))), unready(b, -59*time.Second)), desired: b},
		"no node":               {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late), noRoom(b, -599*time.Second)), desired: b},
		"no node, and no limit": {ws: aWeb(good(a, noon), func(ws *webv1.WebServer) { ws.Spec.Rollout.PendingDeadlineSeconds = 86400 }), seen: somethingSeen(aDeployment(b, a, late), noRoom(b, -23*time.Hour)), desired: b},
		"no node for too long": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late), noRoom(b, -600*time.Second)), desired: b,
			want: again(0, 10*time.Minute, failure("Unschedulable", "not started within 600 s: the pod cannot be scheduled: 0/3 nodes are available"))},
		"no node for too long, for the fourth time": {ws: aWeb(good(a, noon), failed(b), retriedAt(2, noon)), seen: somethingSeen(aDeployment(b, a, late), noRoom(b, -600*time.Second)), desired: b,
			want: again(3, time.Hour, failure("Unschedulable", "not started within 600 s: the pod cannot be scheduled: 0/3 nodes are available"))},
		"no node for too long, and another pod has just started": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late), noRoom(b, -600*time.Second), unready(b, -time.Second)), desired: b},
		"a slow pull": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late), aPod(b, waits("ContainerCreating")), createdAt(-599*time.Second)), desired: b},
		"a pull without an end": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late), aPod(b, waits("ContainerCreating")), createdAt(-600*time.Second)), desired: b,
			want: again(0, 10*time.Minute, failure("ProgressDeadlineExceeded", `not started within 600 s: pod "web-1" has a node that is still pulling its images, or mounting its volumes`))},
		"the registry does not answer": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late), pull(b), func(seen *observation) {
			seen.pods[0].Status.ContainerStatuses[0].State.Waiting.Message = `Back-off pulling image "nginx:b": ErrImagePull: dial tcp 192.0.2.1:443: i/o timeout`
		}), desired: b, want: again(0, 10*time.Minute, failure("ImagePullBackOff", `not healthy within 60 s: the image "nginx:b" cannot be pulled`))},
		"a pod that no node has seen":  {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late), noRoom(b, -time.Second), func(seen *observation) { seen.pods[0].Status = corev1.PodStatus{} }), desired: b},
		"no pod comes":                 {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late, appliedAt(noon.Add(-time.Hour)))), desired: b},
		"its turn has come, and it is": {ws: aWeb(good(a, noon), failed(b), retriedAt(0, noon)), seen: somethingSeen(aDeployment(b, a), unready(b, -time.Minute)), desired: b},
		"too late, nothing before":     {ws: aWeb(), seen: somethingSeen(aDeployment(b, podTemplate{}, late), pull(b)), desired: b},
		"too late, known":              {ws: aWeb(good(a, noon), failed(b)), seen: somethingSeen(aDeployment(b, a, late), pull(b)), desired: b},
		"the one put back is late":     {ws: aWeb(good(a, noon), failed(b)), seen: somethingSeen(aDeployment(a, a, late)), desired: b},
		"another one is asked for":     {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late)), desired: a},
		"the configuration is refused": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a), refuses(b, "nginx: [emerg] unknown directive")),
			desired: b, want: failure("InvalidConfiguration", "nginx: [emerg] unknown directive")},
		"an upstream is not there yet": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a), refuses(b, `nginx: [emerg] host not found in upstream "api"`)), desired: b},
		"the check was killed": {ws: aWeb(good(a, noon)), desired: b, seen: somethingSeen(aDeployment(b, a), refuses(b, ""), func(seen *observation) {
			seen.pods[0].Status.InitContainerStatuses[0].State.Terminated.ExitCode = 137
		})},
		"an old pod refuses its configuration": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a), refuses(a, "nginx: [emerg]")), desired: b},
		"good, and crash-loops soon after": {ws: aWeb(good(b, noon.Add(-30*time.Second))), seen: somethingSeen(aDeployment(b, a), aPod(b, crashes)), desired: b,
			want: failure(crashLoop, `healthy at first, and then container "webserver" is crash-looping: it crashed 3 times, last with exit code 3`)},
		"its pods are refused": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, refused(noon.Add(-59*time.Second)))), desired: b},
		"its pods are refused for too long": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, refused(noon.Add(-time.Minute)))), desired: b,
			want: again(0, 10*time.Minute, failure("PodsRefused", "not healthy within 60 s: pods cannot be created: exceeded quota"))},
		"a webhook does not answer": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, refused(noon.Add(-time.Minute)), func(d *appsv1.Deployment) {
			d.Status.Conditions[0].Message = `Internal error occurred: failed calling webhook "w": connection refused`
		})), desired: b, want: again(0, 10*time.Minute, failure("PodsRefused", `not healthy within 60 s: pods cannot be created: Internal error occurred: failed calling webhook "w": connection refused`))},
		"a webhook refuses its pods": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, refused(noon.Add(-time.Minute)), func(d *appsv1.Deployment) {
			d.Status.Conditions[0].Message = `admission webhook "w" denied the request: no`
		})), desired: b, want: failure("PodsRefused", `not healthy within 60 s: pods cannot be created: admission webhook "w" denied the request: no`)},
		"its pods end on their nodes, again and again": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, progressing("ReplicaSetUpdated", noon), appliedAt(noon)), ended(b, 0), ended(b, 0), ended(b, 0)), desired: b,
			want: again(0, 10*time.Minute, failure("PodsEnded", "3 pods were ended by their nodes, the last one for SysctlForbidden: forbidden sysctl"))},
		"two pods ended, and those of an earlier try":   {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, progressing("ReplicaSetUpdated", noon), appliedAt(noon)), ended(b, 0), ended(b, 0), ended(b, -time.Second), ended(a, 0)), desired: b},
		"good, and then pods end on their nodes":        {ws: aWeb(good(b, noon.Add(-time.Hour))), seen: somethingSeen(aDeployment(b, a, progressing("ReplicaSetUpdated", noon), appliedAt(noon)), ended(b, 0), ended(b, 0), ended(b, 0)), desired: b},
		"those before it were refused, too":             {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, refused(noon.Add(-time.Hour)), appliedAt(noon))), desired: b},
		"good, and then pods are refused":               {ws: aWeb(good(b, noon.Add(-time.Hour))), seen: somethingSeen(aDeployment(b, a, refused(noon.Add(-time.Hour)))), desired: b},
		"good, and a new pod refuses its configuration": {ws: aWeb(good(b, noon.Add(-time.Hour))), seen: somethingSeen(aDeployment(b, a), refuses(b, "nginx: [emerg] host not found")), desired: b},
		"good, and restarted with a slow registry":      {ws: aWeb(good(b, noon.Add(-time.Hour))), seen: somethingSeen(aDeployment(b, a, late), pull(b)), desired: b},
		"good for long, and crash-loops":                {ws: aWeb(good(b, noon.Add(-time.Hour))), seen: somethingSeen(aDeployment(b, a), aPod(b, crashes)), desired: b},
		"good after two crashes":                        {ws: aWeb(good(b, noon)), seen: somethingSeen(aDeployment(b, a), aPod(b, restarted)), desired: b},
		"too late, since it was applied":                {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, late, appliedAt(noon.Add(-time.Minute))), pull(b)), desired: b, want: failure("ImagePullBackOff", `not healthy within 60 s: the image "nginx:b" cannot be pulled`)},
		"the rollout before was too late":               {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, lateSince(noon.Add(-time.Second)), appliedAt(noon))), desired: b},
		"the rollout before, the same second":           {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, lateSince(noon), appliedAt(noon))), desired: b},
		"the rollout before, and this one, too": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, lateSince(noon.Add(-time.Hour)), appliedAt(noon.Add(-time.Minute)), pulls), pull(b)), desired: b,
			want: failure("ImagePullBackOff", `not healthy within 60 s: the image "nginx:b" cannot be pulled`)},
		"scaled up from 0": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, progressing("NewReplicaSetAvailable", noon.Add(-time.Hour)), appliedAt(noon.Add(-59*time.Second)))), desired: b},
		"scaled up from 0, and too late": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, progressing("NewReplicaSetAvailable", noon.Add(-time.Hour)), appliedAt(noon.Add(-time.Minute))), pull(b)), desired: b,
			want: failure("ImagePullBackOff", `not healthy within 60 s: the image "nginx:b" cannot be pulled`)},
		"scaled up from 0, one after the other": {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, progressing("NewReplicaSetAvailable", noon.Add(-time.Hour)), appliedAt(noon.Add(-time.Minute))), readySince(b, noon.Add(-time.Second))), desired: b},
		"the Deployment counts":                 {ws: aWeb(good(a, noon)), seen: somethingSeen(aDeployment(b, a, progressing("ReplicaSetUpdated", noon.Add(-time.Second)), appliedAt(noon.Add(-time.Hour)))), desired: b},
		"too late again, after another try": {ws: aWeb(failed(b), good(a, noon), retry("now")), seen: somethingSeen(aDeployment(b, a, late), pull(b)), desired: b,
			want: failedOn("now", failure("ImagePullBackOff", `not healthy within 60 s: the image "nginx:b" cannot be pulled`))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := judge(tc.ws, tc.seen, tc.desired).failure
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("judge() (-want +got):\n%s", diff)
			}
		})
	}
}

// TestJudgesAgain: nothing happens when the time for refused pods is up.
func TestJudgesAgain(t *testing.T) {
	a, b := templateFor(image("nginx:a")), templateFor(image("nginx:b"))
	for name, tc := range map[string]struct {
		ws   *webv1.WebServer
		seen observation
		want time.Duration
	}{
		"no node":              {aWeb(good(a, noon)), somethingSeen(aDeployment(b, a, late), noRoom(b, -time.Minute)), 9 * time.Minute},
		"it started late":      {aWeb(good(a, noon)), somethingSeen(aDeployment(b, a, lateSince(noon.Add(-time.Hour))), unready(b, -20*time.Second), noRoom(b, -time.Minute)), 40 * time.Second},
		"it was just noticed":  {aWeb(good(a, noon)), somethingSeen(aDeployment(b, a, late), unready(b, -time.Hour)), 15 * time.Second},
		"no pod comes":         {aWeb(good(a, noon)), somethingSeen(aDeployment(b, a, late, appliedAt(noon.Add(-time.Hour)))), 10 * time.Minute},
		"it is to be tried":    {aWeb(good(a, noon), failed(b), retriedAt(0, noon.Add(time.Minute))), somethingSeen(aDeployment(a, a)), time.Minute},
		"it failed for good":   {aWeb(good(a, noon), failed(b)), somethingSeen(aDeployment(a, a)), 0},
		"it is not on its way": {aWeb(good(a, noon)), somethingSeen(aDeployment(a, a)), 0},
	} {
		if r := judge(tc.ws, tc.seen, b); r.wakeAfter != tc.want || r.failure != nil {
			t.Errorf("%s: again after %v, want %v; failure %v", name, r.wakeAfter, tc.want, r.failure)
		}
	}
	r := judge(aWeb(good(a, noon)), somethingSeen(aDeployment(b, a, refused(noon.Add(-20*time.Second)))), b)
	if r.wakeAfter != 40*time.Second || r.problem == nil || r.problem.Message != "pods cannot be created: exceeded quota" {
		t.Errorf("wakes after %v, problem %+v", r.wakeAfter, r.problem)
	}
	stopped := progressing("NewReplicaSetAvailable", noon.Add(-time.Hour))
	r = judge(aWeb(good(a, noon)), somethingSeen(aDeployment(b, a, stopped, appliedAt(noon.Add(-50*time.Second)))), b)
	if r.wakeAfter != 10*time.Second {
		t.Errorf("scaled up from 0: again after %v", r.wakeAfter)
	}
	ready := corev1.ContainerStatus{Ready: true, RestartCount: 2,
		State:                corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon}}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3}}}
	r = judge(aWeb(good(a, noon)), somethingSeen(aDeployment(a, b), aPod(a, ready)), a)
	if r.wakeAfter != time.Minute || r.problem == nil {
		t.Errorf("ready after crashes: wakes after %v, problem %+v", r.wakeAfter, r.problem)
	}
}

func TestNodePort(t *testing.T) {
	requested := func(service webv1.ServiceSpec) webOption {
		return func(ws *webv1.WebServer) { ws.Spec.Service = &service }
	}
	had := func(ws *webv1.WebServer) { ws.Status.NodePort = 31234 }
	free := func(seen *observation) { seen.tutorialPort = true }

	cases := map[string]struct {
		ws   *webv1.WebServer
		seen observation
		want int32
	}{
		"the first one":           {ws: aWeb(), seen: somethingSeen(free), want: tutorialNodePort},
		"the others":              {ws: aWeb(), seen: somethingSeen(), want: 0},
		"there, not yet told":     {ws: aWeb(), seen: somethingSeen(free, aService(31111)), want: 31111},
		"changed behind its back": {ws: aWeb(had), seen: somethingSeen(free, aService(31111)), want: 31234},
		"deleted":                 {ws: aWeb(had), seen: somethingSeen(free), want: 31234},
		"the user's own":          {ws: aWeb(had, requested(webv1.ServiceSpec{NodePort: 30500})), seen: somethingSeen(free, aService(31234)), want: 30500},
		"not on nodes":            {ws: aWeb(had, requested(webv1.ServiceSpec{Type: corev1.ServiceTypeClusterIP})), seen: somethingSeen(free, aService(31234)), want: 0},
		"a load balancer's":       {ws: aWeb(requested(webv1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer})), seen: somethingSeen(free), want: 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := nodePort(tc.ws, tc.seen); got != tc.want {
				t.Errorf("nodePort() = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestHTTPSNodePort(t *testing.T) {
	had := func(ws *webv1.WebServer) { ws.Status.HTTPSNodePort = 31443 }
	inside := func(ws *webv1.WebServer) { ws.Spec.Service = &webv1.ServiceSpec{Type: corev1.ServiceTypeClusterIP} }
	there := func(seen *observation) {
		aService(31080)(seen)
		s := seen.service()
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: httpsName, Port: httpsPort, Protocol: corev1.ProtocolTCP, NodePort: 31111})
	}
	for name, tc := range map[string]struct {
		ws   *webv1.WebServer
		seen observation
		want int32
	}{
		"the first time":          {aWeb(), somethingSeen(aService(31080)), 0},
		"there, not yet told":     {aWeb(), somethingSeen(there), 31111},
		"changed behind its back": {aWeb(had), somethingSeen(there), 31443},
		"deleted":                 {aWeb(had), somethingSeen(), 31443},
		"not on nodes":            {aWeb(had, inside), somethingSeen(there), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := httpsNodePort(tc.ws, tc.seen); got != tc.want {
				t.Errorf("httpsNodePort() = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestFindsByName(t *testing.T) {
	none := podTemplate{}
	port := func(n int32) webOption { return func(ws *webv1.WebServer) { ws.Spec.Port = n } }
	a, b := templateFor(port(80)), templateFor(port(8080))
	foreign := templateOf(corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: serverContainer}}}})
	hidden := templateFor(func(ws *webv1.WebServer) {
		proxy := corev1.Container{Name: "proxy", Ports: []corev1.ContainerPort{{Name: httpName, ContainerPort: 9000}}}
		ws.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{proxy, {Name: serverContainer}}}}
	})

	cases := map[string]struct {
		ws     *webv1.WebServer
		seen   observation
		chosen choice
		want   bool
	}{
		"nothing there":                   {aWeb(), somethingSeen(), choice{template: a}, true},
		"nothing there, an input missing": {aWeb(), somethingSeen(), choice{}, true},
		"another port":                    {aWeb(good(a, noon)), somethingSeen(aDeployment(a, none)), choice{template: b, lastGood: a}, true},
		"put back from another port":      {aWeb(good(a, noon)), somethingSeen(aDeployment(b, a)), choice{template: a, lastGood: a}, true},
		"another operator's":              {aWeb(), somethingSeen(aDeployment(none, none)), choice{adopted: true}, false},
		"ours follows another operator's": {aWeb(), somethingSeen(aDeployment(a, foreign)), choice{template: a, lastGood: foreign}, false},
		"ours has followed it":            {aWeb(good(a, noon)), somethingSeen(aDeployment(a, foreign)), choice{template: a, lastGood: foreign}, true},
		"ours is put back":                {aWeb(good(a, noon)), somethingSeen(aDeployment(a, foreign)), choice{template: foreign, lastGood: foreign}, false},
		"a container before has the name": {aWeb(), somethingSeen(), choice{template: hidden}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := findsByName(tc.ws, tc.seen, tc.chosen); got != tc.want {
				t.Errorf("findsByName() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestReplicas(t *testing.T) {
	auto := func(ws *webv1.WebServer) {
		ws.Spec.Autoscaling = &webv1.AutoscalingSpec{MinReplicas: 2, MaxReplicas: 5, TargetCPUUtilizationPercentage: 80}
	}
	scaled := func(seen *observation) {
		d := seen.deployment()
		d.ManagedFields = []metav1.ManagedFieldsEntry{{Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}}
	}
	stopped := func(seen *observation) { seen.deployment().Spec.Replicas = new(int32(0)) }
	another := func(o *observation) { o.autoscaled = true }
	owned := func(seen *observation) {
		seen.deployment().ManagedFields = []metav1.ManagedFieldsEntry{{Manager: managedBy, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)}}
	}
	there := aDeployment(templateFor(), podTemplate{})

	cases := map[string]struct {
		ws   *webv1.WebServer
		seen observation
		want *int32
	}{
		"the spec's":           {ws: aWeb(), seen: somethingSeen(there), want: new(int32(3))},
		"scaled by hand":       {ws: aWeb(), seen: somethingSeen(there, scaled), want: new(int32(3))},
		"another's autoscaler": {ws: aWeb(), seen: somethingSeen(there, scaled, func(o *observation) { o.autoscaled = true })},
		"another's sets 0, which leaves no trace": {ws: aWeb(), seen: somethingSeen(there, stopped, another)},
		"another's has not set them yet":          {ws: aWeb(func(ws *webv1.WebServer) { ws.Spec.Replicas = new(int32(5)) }), seen: somethingSeen(there, owned, another), want: new(int32(3))},
		"another's, nothing there":                {ws: aWeb(), seen: somethingSeen(another), want: new(int32(3))},
		"autoscaled from now on":                  {ws: aWeb(auto), seen: somethingSeen(there), want: new(int32(3))},
		"autoscaled, nothing there":               {ws: aWeb(auto), seen: somethingSeen(), want: new(int32(2))},
		"autoscaled, and stopped by hand":         {ws: aWeb(auto), seen: somethingSeen(there, scaled, stopped), want: new(int32(2))},
		"another's autoscaler sets 0":             {ws: aWeb(), seen: somethingSeen(there, scaled, stopped, func(o *observation) { o.autoscaled = true })},
		"autoscaled, and it has been set":         {ws: aWeb(auto), seen: somethingSeen(there, scaled)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, replicas(tc.ws, tc.seen)); diff != "" {
				t.Errorf("replicas() (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNames(t *testing.T) {
	long := "a-name-that-is-much-longer-than-what-a-label-or-a-service-may-have-as-a-name"
	for name, want := range map[string]string{
		"webserver-sample": "webserver-sample-service",
		"www.example":      "w-www-example-" + names.Hash("www.example") + "-service",
		"1st":              "w-1st-" + names.Hash("1st") + "-service",
		long:               long[:44] + "-" + names.Hash(long) + "-service",
	} {
		got := serviceName(aWeb(func(ws *webv1.WebServer) { ws.Name = name }))
		if got != want || len(got) > names.MaxLabel || len(validation.IsDNS1035Label(got)) > 0 {
			t.Errorf("serviceName(%q) = %q (%d bytes), want %q", name, got, len(got), want)
		}
	}
}

// TestKeptTemplates: the API server's order of fields does not make another template of one
// that is gone back to.
func TestKeptTemplates(t *testing.T) {
	kept := func(template podTemplate) appsv1.ControllerRevision {
		var fields map[string]any // written in the order of their names
		if err := json.Unmarshal([]byte(template.json), &fields); err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		if string(data) == template.json {
			t.Fatal("the order is the same")
		}
		return appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{revisionAnnotation: template.revision}},
			Data:       runtime.RawExtension{Raw: data},
		}
	}
	template := templateFor()
	if got := keptIn(kept(template)); got != template {
		t.Errorf("got %+v, want %+v", got, template)
	}
	// A field that this version does not know.
	newer := templateFrom(strings.Replace(template.json, `"spec":{`, `"spec":{"zones":1,`, 1))
	if got := keptIn(kept(newer)); got.revision != newer.revision || !strings.Contains(got.json, "zones") {
		t.Errorf("got %+v, want %+v", got, newer)
	}
}
