//go:build apiserver

package webserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"

	"example.com/fairlead/internal/kit/apply"
)

// TestRepair changes or deletes every child, and measures how soon it is repaired.
func TestRepair(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R)))
	s.settled(reasonReady, "nginx:1")
	svc, err := read(ctx, s.R, "web-service", &corev1.Service{})
	s.Must(err)
	port := currentNodePort(svc, httpName)

	object := func(obj client.Object, name string) client.Object {
		obj.SetNamespace(s.R.Namespace)
		obj.SetName(name)
		return obj
	}
	serviceIsRight := func() error {
		got, err := read(ctx, s.R, "web-service", &corev1.Service{})
		if err != nil {
			return err
		}
		p := got.Spec.Ports
		if got.Spec.Type != corev1.ServiceTypeNodePort || len(p) != 1 || p[0].Port != 80 || p[0].NodePort != port || p[0].TargetPort.String() != "http" ||
			!maps.Equal(got.Spec.Selector, selector(mustCurrent(s))) || got.Labels["app"] != "webserver" || got.DeletionTimestamp != nil || !metav1.IsControlledBy(got, mustCurrent(s)) {
			return fmt.Errorf("Service %+v %+v", got.Spec, got.Labels)
		}
		return nil
	}
	deploymentIsRight := func() error {
		got, err := read(ctx, s.R, "web", &appsv1.Deployment{})
		if err != nil {
			return err
		}
		c := got.Spec.Template.Spec.Containers[0]
		if *got.Spec.Replicas != 1 || c.Image != "nginx:1" || c.ReadinessProbe == nil || c.ReadinessProbe.Exec != nil ||
			c.ReadinessProbe.HTTPGet == nil && c.ReadinessProbe.TCPSocket == nil || got.Labels["app"] != "webserver" || c.Lifecycle == nil || got.Spec.Paused ||
			got.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0 || !metav1.IsControlledBy(got, mustCurrent(s)) {
			return fmt.Errorf("Deployment %+v", got.Spec)
		}
		return nil
	}
	budgetIsRight := func() error {
		got, err := read(ctx, s.R, "web", &policyv1.PodDisruptionBudget{})
		if err != nil {
			return err
		}
		if got.Spec.MaxUnavailable == nil || got.Spec.MaxUnavailable.IntValue() != 1 ||
			got.Spec.UnhealthyPodEvictionPolicy == nil || *got.Spec.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow ||
			!metav1.IsControlledBy(got, mustCurrent(s)) || got.Labels["app"] != "webserver" ||
			!maps.Equal(got.Spec.Selector.MatchLabels, selector(mustCurrent(s))) || len(got.Spec.Selector.MatchExpressions) > 0 {
			return fmt.Errorf("PodDisruptionBudget %+v", got.Spec)
		}
		return nil
	}
	cases := []struct {
		name  string
		obj   client.Object
		patch string // a JSON patch; "" deletes
		right func() error
	}{
		{"Service deleted", object(&corev1.Service{}, "web-service"), "", serviceIsRight},
		{"type", object(&corev1.Service{}, "web-service"), `[{"op":"replace","path":"/spec/type","value":"ClusterIP"},{"op":"remove","path":"/spec/ports/0/nodePort"}]`, serviceIsRight},
		{"node port", object(&corev1.Service{}, "web-service"), `[{"op":"remove","path":"/spec/ports/0/nodePort"}]`, serviceIsRight},
		{"port", object(&corev1.Service{}, "web-service"), `[{"op":"replace","path":"/spec/ports/0/port","value":8080}]`, serviceIsRight},
		{"target port", object(&corev1.Service{}, "web-service"), `[{"op":"replace","path":"/spec/ports/0/targetPort","value":8080}]`, serviceIsRight},
		{"selector", object(&corev1.Service{}, "web-service"), `[{"op":"replace","path":"/spec/selector/webserver_cr","value":"other"}]`, serviceIsRight},
		{"selector with more", object(&corev1.Service{}, "web-service"), `[{"op":"add","path":"/spec/selector/theirs","value":"1"}]`, serviceIsRight},
		{"no selector", object(&corev1.Service{}, "web-service"), `[{"op":"remove","path":"/spec/selector"}]`, serviceIsRight},
		{"labels", object(&corev1.Service{}, "web-service"), `[{"op":"remove","path":"/metadata/labels"}]`, serviceIsRight},
		{"replicas", object(&appsv1.Deployment{}, "web"), `[{"op":"replace","path":"/spec/replicas","value":3}]`, deploymentIsRight},
		{"image", object(&appsv1.Deployment{}, "web"), `[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"nginx:2"}]`, deploymentIsRight},
		{"probe", object(&appsv1.Deployment{}, "web"), `[{"op":"remove","path":"/spec/template/spec/containers/0/readinessProbe"}]`, deploymentIsRight},
		{"drain", object(&appsv1.Deployment{}, "web"), `[{"op":"remove","path":"/spec/template/spec/containers/0/lifecycle"}]`, deploymentIsRight},
		{"strategy", object(&appsv1.Deployment{}, "web"), `[{"op":"replace","path":"/spec/strategy/rollingUpdate/maxUnavailable","value":1}]`, deploymentIsRight},
		{"paused", object(&appsv1.Deployment{}, "web"), `[{"op":"add","path":"/spec/paused","value":true}]`, deploymentIsRight},
		{"annotation", object(&appsv1.Deployment{}, "web"), `[{"op":"remove","path":"/metadata/annotations/webserver-operator~1template"}]`, func() error {
			got, err := read(ctx, s.R, "web", &appsv1.Deployment{})
			if err == nil && got.Annotations[templateAnnotation] == "" {
				err = errors.New("no annotation with the template")
			}
			return errors.Join(err, deploymentIsRight())
		}},
		{"probe of another sort", object(&appsv1.Deployment{}, "web"), `[{"op":"replace","path":"/spec/template/spec/containers/0/readinessProbe","value":{"exec":{"command":["true"]}}}]`, deploymentIsRight},
		{"Deployment without labels", object(&appsv1.Deployment{}, "web"), `[{"op":"remove","path":"/metadata/labels"}]`, deploymentIsRight},
		{"Deployment without owner", object(&appsv1.Deployment{}, "web"), `[{"op":"remove","path":"/metadata/ownerReferences"}]`, deploymentIsRight},
		{"Service without owner", object(&corev1.Service{}, "web-service"), `[{"op":"remove","path":"/metadata/ownerReferences"}]`, serviceIsRight},
		{"Service without owner and labels", object(&corev1.Service{}, "web-service"), `[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"remove","path":"/metadata/labels"}]`, serviceIsRight},
		{"Deployment deleted", object(&appsv1.Deployment{}, "web"), "", deploymentIsRight},
		{"budget", object(&policyv1.PodDisruptionBudget{}, "web"), `[{"op":"replace","path":"/spec/maxUnavailable","value":0}]`, budgetIsRight},
		{"budget of ready pods", object(&policyv1.PodDisruptionBudget{}, "web"), `[{"op":"remove","path":"/spec/unhealthyPodEvictionPolicy"}]`, budgetIsRight},
		{"budget selector", object(&policyv1.PodDisruptionBudget{}, "web"), `[{"op":"add","path":"/spec/selector/matchLabels/theirs","value":"1"}]`, budgetIsRight},
		{"budget expressions", object(&policyv1.PodDisruptionBudget{}, "web"), `[{"op":"add","path":"/spec/selector/matchExpressions","value":[{"key":"theirs","operator":"Exists"}]}]`, budgetIsRight},
		{"budget's other field", object(&policyv1.PodDisruptionBudget{}, "web"), `[{"op":"remove","path":"/spec/maxUnavailable"},{"op":"add","path":"/spec/minAvailable","value":1}]`, budgetIsRight},
		{"budget without owner and labels", object(&policyv1.PodDisruptionBudget{}, "web"), `[{"op":"remove","path":"/metadata/ownerReferences"},{"op":"remove","path":"/metadata/labels"}]`, budgetIsRight},
		{"budget deleted", object(&policyv1.PodDisruptionBudget{}, "web"), "", budgetIsRight},
	}
	for _, tc := range cases {
		if tc.patch == "" {
			s.Must(s.Delete(ctx, tc.obj))
		} else {
			s.Must(s.Patch(ctx, tc.obj, client.RawPatch(types.JSONPatchType, []byte(tc.patch))))
		}
		// Less than what the operator waits for a cache; how fast it really is
		// shows the benchmark, on a machine that is not busy.
		t.Logf("%s: repaired after %v", tc.name, s.Within(5*time.Second, tc.right))
	}
	s.settled(reasonReady, "nginx:1")
	s.Must(s.Counter.Silence(ctx, 3*time.Second))
	var events corev1.EventList
	s.Must(s.List(ctx, &events, client.InNamespace(s.R.Namespace)))
	if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "TakenBack" }) {
		t.Error("no event says that the owner reference or labels of a child were restored")
	}
}

// TestLeavesOthersAlone: what others add stays, and is no reason to write.
func TestLeavesOthersAlone(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R)))
	s.settled(reasonReady, "nginx:1")
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "web"}}
	s.Must(s.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(`{"metadata":{"annotations":{"theirs":"1"}},"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"webserver"},{"name":"mesh"}],
		"containers":[{"name":"mesh","image":"mesh:1","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"]}}}]}}}}`))))
	s.settled(reasonReady, "nginx:1")
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
	got, err := read(ctx, s.R, "web", &appsv1.Deployment{})
	s.Must(err)
	if len(got.Spec.Template.Spec.Containers) != 2 || got.Annotations["theirs"] != "1" {
		t.Errorf("the sidecar or the annotation is gone: %+v", got.Spec.Template.Spec.Containers)
	}
}

// TestConflict: an object with another owner is not touched, and the other children are
// there; once it is gone, the WebServer is ready.
func TestConflict(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "web-service"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1234}}},
	}
	s.Must(s.Create(ctx, foreign))
	before := foreign.ResourceVersion
	s.Must(s.Create(ctx, story(s.R)))
	if ready := s.waitsFor(apply.ReasonConflict); ready.Message != `Service "web-service" exists and is not owned by this object: delete or rename it` {
		t.Errorf("message %q", ready.Message)
	}
	s.Within(5*time.Second, func() error { _, err := read(ctx, s.R, "web", &appsv1.Deployment{}); return err })
	got, err := read(ctx, s.R, "web-service", &corev1.Service{})
	s.Must(err)
	if got.ResourceVersion != before {
		t.Errorf("the foreign Service was changed: %+v", got)
	}
	s.Must(s.Delete(ctx, foreign))
	s.settled(reasonReady, "nginx:1")
}

// TestPortTaken: status reports a port that is taken, and the WebServer gets it once it
// is free. It is one of the first 86, which the API server gives only to those who
// request it, while there are others.
func TestPortTaken(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	holder := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "holder"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80, NodePort: 30077}}},
	}
	s.Must(s.Create(ctx, holder))
	s.Must(s.Create(ctx, story(s.R, func(ws *webv1.WebServer) { ws.Spec.Service = &webv1.ServiceSpec{NodePort: 30077} })))
	s.waitsFor(reasonPortTaken)
	s.Within(10*time.Second, func() error {
		available := meta.FindStatusCondition(mustCurrent(s).Status.Conditions, webv1.ConditionAvailable)
		if available == nil || available.Reason != reasonNoService {
			return fmt.Errorf("Available is %+v", available)
		}
		return nil
	})
	if url := mustCurrent(s).Status.URL; url != "" {
		t.Errorf("without a Service there is the URL %s", url)
	}
	s.Must(s.Delete(ctx, holder))
	s.settled(reasonReady, "nginx:1")
	if port := mustCurrent(s).Status.NodePort; port != 30077 {
		t.Errorf("node port %d", port)
	}
}

// TestTheGuidesPort: one WebServer has 30010, the other one another port.
func TestTheGuidesPort(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	var all corev1.ServiceList
	s.Must(s.List(ctx, &all))
	for i := range all.Items { // of other tests
		if len(hasTutorialPort(&all.Items[i])) > 0 {
			s.Must(client.IgnoreNotFound(s.Delete(ctx, &webv1.WebServer{ObjectMeta: metav1.ObjectMeta{Namespace: all.Items[i].Namespace, Name: "web"}})))
			s.Must(client.IgnoreNotFound(s.Delete(ctx, &all.Items[i])))
		}
	}
	first, second := story(s.R), story(s.R)
	second.Name = "web2"
	s.Must(s.Create(ctx, first))
	s.settled(reasonReady, "nginx:1")
	s.Must(s.Create(ctx, second))
	s.Within(10*time.Second, func() error {
		one, err := read(ctx, s.R, "web-service", &corev1.Service{})
		two, err2 := read(ctx, s.R, "web2-service", &corev1.Service{})
		if err := errors.Join(err, err2); err != nil {
			return err
		}
		if a, b := currentNodePort(one, httpName), currentNodePort(two, httpName); a != tutorialNodePort || b == 0 || b == tutorialNodePort {
			return fmt.Errorf("node ports %d and %d", a, b)
		}
		return nil
	})
}

// TestInputs: status reports a ConfigMap that is missing, and the operator notices when
// it appears and when it changes; what the pods mount is a copy.
func TestInputs(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R, func(ws *webv1.WebServer) {
		ws.Spec.Content = &webv1.ContentSpec{ConfigMap: "pages", Path: "/www"}
	})))
	if ready := s.waitsFor("ConfigMapNotFound"); ready.Message != `ConfigMap "pages" does not exist: create it, or correct its name` {
		t.Errorf("message %q", ready.Message)
	}
	if _, err := read(ctx, s.R, "web", &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is a Deployment without its pages: %v", err)
	}
	pages := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.R.Namespace, Name: "pages"}, Data: map[string]string{"index.html": "one"}}
	s.Must(s.Create(ctx, pages))
	s.settled(reasonReady, "nginx:1")
	// A copy that lost its label is not shown by the cache, and gets it again.
	var copies corev1.ConfigMapList
	s.Must(s.List(ctx, &copies, client.InNamespace(s.R.Namespace), client.MatchingLabels(labels(mustCurrent(s)))))
	if len(copies.Items) != 1 {
		t.Fatalf("%d copies, want 1", len(copies.Items))
	}
	kept := &copies.Items[0]
	s.Must(s.Patch(ctx, kept, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null}}`))))
	s.Within(20*time.Second, func() error {
		err := s.Get(ctx, client.ObjectKeyFromObject(kept), kept)
		if err == nil && !maps.Equal(kept.Labels, labels(mustCurrent(s))) {
			err = fmt.Errorf("the copy has labels %v", kept.Labels)
		}
		return err
	})
	first := mustCurrent(s).Status.Revision
	pages.Data["index.html"] = "two"
	s.Must(s.Update(ctx, pages))
	s.Within(20*time.Second, func() error {
		if ws := mustCurrent(s); ws.Status.LastGoodRevision == first {
			return errors.New("the new page is not served")
		}
		return nil
	})
	s.Must(s.Delete(ctx, pages))
	s.waitsFor("ConfigMapNotFound")
	d, err := read(ctx, s.R, "web", &appsv1.Deployment{})
	s.Must(err)
	if d.Status.AvailableReplicas != 1 {
		t.Errorf("without the ConfigMap the pods are gone: %+v", d.Status)
	}
	s.Must(s.Counter.Silence(ctx, 2*time.Second))
}

// TestWrites: one write for each child and few of status, and nothing after. The pod may be ready a moment before
// the Service leads to it.
func TestWrites(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R)))
	s.settled(reasonReady, "nginx:1")
	counts := s.Counter.Counts()
	for request, most := range map[string]int{
		"create deployments": 1, "create services": 2, "create poddisruptionbudgets": 1, "update webservers/status": 3,
		"patch deployments": 0, "patch services": 0, "patch poddisruptionbudgets": 0,
	} {
		if counts[request] > most {
			t.Errorf("%d × %s, want %d at most", counts[request], request, most)
		}
	}
	t.Log(counts)
	s.Must(s.Counter.Silence(ctx, 3*time.Second))
}

// TestTakeOver: the tutorial's objects are taken over without a new pod, and the next
// change of the spec makes them the operator's own.
func TestTakeOver(t *testing.T) {
	s, ctx := newStage(t), context.Background()
	s.Must(s.Create(ctx, story(s.R)))
	ws := mustCurrent(s)
	s.Must(makeTheTutorials(ctx, s.Client, ws))
	s.settled(reasonReady, "nginx:1")
	target := func() string {
		svc, err := read(ctx, s.R, "web-service", &corev1.Service{})
		s.Must(err)
		return svc.Spec.Ports[0].TargetPort.String()
	}
	if ws := mustCurrent(s); ws.Status.URL != fmt.Sprintf("http://192.0.2.1:%d", ws.Status.NodePort) || ws.Status.Image != "nginx:1" {
		t.Errorf("status %+v", ws.Status)
	}
	s.Must(s.Counter.Silence(ctx, time.Second))
	if got := target(); got != "80" {
		t.Errorf("the Service looks for port %s, which the tutorial's pods do not name", got)
	}
	s.Must(s.Patch(ctx, ws, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"image":"nginx:2"}}`))))
	s.settled(reasonReady, "nginx:2")
	if got := target(); got != httpName {
		t.Errorf("the Service looks for port %s, want %s", got, httpName)
	}
	if meta.FindStatusCondition(mustCurrent(s).Status.Conditions, webv1.ConditionAdopted) != nil {
		t.Error("it still says that it was taken over")
	}
}
