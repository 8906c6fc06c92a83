package webserver

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/disruption"
	"example.com/fairlead/internal/kit/services"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit/obstacles"
)

// TestAvailable: ready pods alone answer nobody.
func TestAvailable(t *testing.T) {
	a := templateFor()
	foreign := func(seen *observation) {
		aService(0)(seen)
		seen.service().OwnerReferences = nil
	}
	for name, tc := range map[string]struct {
		seen observation
		want string
	}{
		"pods and a Service":      {somethingSeen(aDeployment(a, podTemplate{}), aService(30010)), reasonServing},
		"no Service":              {somethingSeen(aDeployment(a, podTemplate{})), reasonNoService},
		"somebody else's Service": {somethingSeen(aDeployment(a, podTemplate{}), foreign), reasonNoService},
		"a Service that lags":     {somethingSeen(aDeployment(a, podTemplate{}), aService(30010), leadsNowhere), reasonNotReached},
		"no pods":                 {somethingSeen(aService(30010)), reasonNoPods},
	} {
		st := summarize(aWeb(), tc.seen, &plan{chosen: choice{template: a, desired: a}}, nil)
		if got := meta.FindStatusCondition(st.Conditions, webv1.ConditionAvailable); got.Reason != tc.want {
			t.Errorf("%s: Available is %s, %s", name, got.Status, got.Reason)
		}
	}
}

// leadsNowhere has a Service without a ready address.
func leadsNowhere(seen *observation) { seen.reached = services.Targets{} }

// TestCopyLost: status reports a copy that cannot be made again.
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
	names := func(s *snapshot) seenOption { return func(seen *observation) { seen.inputs.content = s } }
	for name, tc := range map[string]struct {
		seen observation
		lost bool
	}{
		"there":               {somethingSeen(there, names(two)), false},
		"about to be written": {somethingSeen(names(one)), false},
		"put back, and lost":  {somethingSeen(names(two)), true},
	} {
		if got := copyLost(ws, tc.seen, &plan{chosen: choice{template: old}}); (got != nil) != tc.lost {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestACrashLoopIsTold: with the program's words, also while the pod is ready for a
// moment.
func TestACrashLoopIsTold(t *testing.T) {
	a := templateFor()
	end := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "nginx: [warn] user\nnginx: [emerg] bind() failed\n"}}
	const words = `container "webserver" is crash-looping: it crashed 3 times, last with exit code 1: nginx: [emerg] bind() failed`
	waits := corev1.ContainerStatus{State: waits(crashLoop).State, LastTerminationState: end, RestartCount: 2}
	runs := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Time{Time: noon}}}, LastTerminationState: end, RestartCount: 3, Ready: true}
	down := func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 2 }
	for name, tc := range map[string]struct{ seen observation }{
		"waits":         {somethingSeen(aDeployment(a, podTemplate{}, down), aService(30010), aPod(a, waits))},
		"ready, so far": {somethingSeen(aDeployment(a, podTemplate{}), aService(30010), aPod(a, runs))},
	} {
		ws := aWeb(good(a, noon))
		st := summarize(ws, tc.seen, &plan{chosen: choice{template: a, desired: a}, rollout: judge(ws, tc.seen, a)}, nil)
		if got := meta.FindStatusCondition(st.Conditions, status.Ready); got.Reason != crashLoop || !strings.HasSuffix(got.Message, ": "+words) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestURL: there is one only where it leads to the pods.
func TestURL(t *testing.T) {
	a := templateFor()
	had := func(url string, port int32) webOption {
		return func(ws *webv1.WebServer) { ws.Status.URL, ws.Status.NodePort = url, port }
	}
	foreign := func(seen *observation) {
		aService(30010)(seen)
		seen.service().OwnerReferences = nil
	}
	adopted := func(seen *observation) {
		aDeployment(podTemplate{}, podTemplate{})(seen)
		seen.hosts = []string{"192.0.2.7"}
	}
	for name, tc := range map[string]struct {
		ws   *webv1.WebServer
		seen observation
		want string
	}{
		"a node of a pod":                  {aWeb(), somethingSeen(aDeployment(a, podTemplate{}), aService(30010), aPod(a, corev1.ContainerStatus{})), "http://192.0.2.1:30010"},
		"a Service that lags":              {aWeb(), somethingSeen(aDeployment(a, podTemplate{}), aService(30010), aPod(a, corev1.ContainerStatus{}), leadsNowhere), ""},
		"it lags, and had one":             {aWeb(had("http://192.0.2.1:30010", 30010)), somethingSeen(aDeployment(a, podTemplate{}), aService(30010), aPod(a, corev1.ContainerStatus{}), leadsNowhere), "http://192.0.2.1:30010"},
		"another operator's pods":          {aWeb(), somethingSeen(adopted, aService(30010)), "http://192.0.2.7:30010"},
		"no Service, the port is taken":    {aWeb(), somethingSeen(aDeployment(a, podTemplate{}), aPod(a, corev1.ContainerStatus{})), ""},
		"it had one, and the port is lost": {aWeb(had("http://192.0.2.1:30010", 30010)), somethingSeen(aDeployment(a, podTemplate{}), aPod(a, corev1.ContainerStatus{})), ""},
		"somebody else's Service":          {aWeb(), somethingSeen(aDeployment(a, podTemplate{}), foreign, aPod(a, corev1.ContainerStatus{})), ""},
	} {
		if got := summarize(tc.ws, tc.seen, &plan{chosen: choice{template: a, desired: a}}, nil).URL; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestHosts: a node that does not answer is none that a URL may lead to.
func TestHosts(t *testing.T) {
	a := templateFor()
	lost, serves := somethingSeen(aPod(a, corev1.ContainerStatus{})).pods[0], somethingSeen(aPod(a, corev1.ContainerStatus{})).pods[0]
	obstacles.Of[obstacles.SilentNode](&lost, serverContainer)
	lost.Status.HostIP, serves.Status.HostIP = "192.0.2.1", "192.0.2.2"
	if got := hostsOf([]corev1.Pod{lost, serves}); !slices.Equal(got, []string{"192.0.2.2"}) {
		t.Errorf("the nodes are %v", got)
	}
}

// TestServedImage: status has the image that serves, not the one that is wanted.
func TestServedImage(t *testing.T) {
	a, b := templateFor(image("nginx:a")), templateFor(image("nginx:b"))
	was := func(image string) webOption { return func(ws *webv1.WebServer) { ws.Status.Image = image } }
	foreign := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Name: serverContainer, Image: "nginx:old"}}
	}
	for name, tc := range map[string]struct {
		ws     *webv1.WebServer
		seen   observation
		chosen choice
		want   string
	}{
		"it comes up":             {aWeb(image("nginx:a")), somethingSeen(aDeployment(a, podTemplate{}, late)), choice{desired: a, template: a}, "nginx:a"},
		"all pods have it":        {aWeb(was("nginx:a"), image("nginx:b")), somethingSeen(aDeployment(b, a)), choice{desired: b, template: b}, "nginx:b"},
		"it is rolled out":        {aWeb(was("nginx:a"), image("nginx:b")), somethingSeen(aDeployment(b, a, late)), choice{desired: b, template: b}, "nginx:a"},
		"rolled out, by 0.0.2":    {aWeb(good(a, noon), image("nginx:b")), somethingSeen(aDeployment(b, a, late)), choice{desired: b, template: b}, "nginx:a"},
		"another operator's pods": {aWeb(image("nginx:b")), somethingSeen(aDeployment(podTemplate{}, podTemplate{}, foreign)), choice{desired: b, adopted: true}, "nginx:old"},
	} {
		if got := summarize(tc.ws, tc.seen, &plan{chosen: tc.chosen}, nil).Image; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestAutoscalingNeedsARequest: it aims at a percentage of what the pods request.
func TestAutoscalingNeedsARequest(t *testing.T) {
	auto := aWeb(func(ws *webv1.WebServer) {
		ws.Spec.Autoscaling = &webv1.AutoscalingSpec{MinReplicas: 1, MaxReplicas: 3}
	})
	cpu := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}}
	pod := func(server, log corev1.ResourceRequirements) seenOption {
		return func(seen *observation) {
			seen.pods = []corev1.Pod{{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: serverContainer, Resources: server}, {Name: "log", Resources: log}}}}}
		}
	}
	for name, tc := range map[string]struct {
		ws   *webv1.WebServer
		seen observation
		want string
	}{
		"no autoscaling":     {aWeb(), somethingSeen(pod(corev1.ResourceRequirements{}, cpu)), ""},
		"all request":        {auto, somethingSeen(pod(cpu, cpu)), ""},
		"no pods":            {auto, somethingSeen(), ""},
		"the server's":       {auto, somethingSeen(pod(corev1.ResourceRequirements{}, cpu)), "set spec.resources.requests.cpu"},
		"one that is beside": {auto, somethingSeen(pod(cpu, corev1.ResourceRequirements{})), `container "log" requests none: set spec.podTemplate`},
	} {
		got := ""
		if p := noRequest(tc.ws, tc.seen); p != nil {
			got = p.Message
		}
		if !strings.HasSuffix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// TestAdoptedPodsMayNotDrain: then the condition says so.
func TestAdoptedPodsMayNotDrain(t *testing.T) {
	hook := func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers = []corev1.Container{{Lifecycle: &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{}}}}
	}
	const words = "They do not drain: the first change may fail some requests"
	if got := adoptedMessage(aWeb(), somethingSeen(aDeployment(podTemplate{}, podTemplate{})), podTemplate{}); !strings.Contains(got, words) {
		t.Errorf("without a hook: %q", got)
	}
	if got := adoptedMessage(aWeb(), somethingSeen(aDeployment(podTemplate{}, podTemplate{}, hook)), podTemplate{}); strings.Contains(got, words) {
		t.Errorf("with a hook: %q", got)
	}
}

// TestStaying names what stays of an adopted Service, and not what the API server or the WebServer gives it.
func TestStaying(t *testing.T) {
	cluster, once := corev1.ServiceInternalTrafficPolicyCluster, corev1.IPFamilyPolicySingleStack
	s := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": "web"}, ClusterIP: "192.0.2.1", ClusterIPs: []string{"192.0.2.1"},
		IPFamilyPolicy: &once, InternalTrafficPolicy: &cluster, SessionAffinity: corev1.ServiceAffinityNone, AllocateLoadBalancerNodePorts: new(true), Ports: []corev1.ServicePort{{Port: 80}}}}
	if got := staying(aWeb(), s); len(got) != 0 {
		t.Errorf("of a usual Service: %q", got)
	}
	s.Spec.SessionAffinity, s.Spec.LoadBalancerSourceRanges = corev1.ServiceAffinityClientIP, []string{"192.0.2.0/24"}
	s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 9090})
	if got, want := staying(aWeb(), s), []string{"spec.loadBalancerSourceRanges", "spec.sessionAffinity", "port 9090"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestAdoptedWhileServiceKeeps: the condition stays after the first change, as long as something of the former owner's does.
func TestAdoptedWhileServiceKeeps(t *testing.T) {
	a := templateFor()
	affinity := func(seen *observation) { seen.service().Spec.SessionAffinity = corev1.ServiceAffinityClientIP }
	for name, tc := range map[string]struct {
		ws   *webv1.WebServer
		seen []seenOption
		want string
	}{
		"something stays":             {aWeb(adopting), []seenOption{aService(0), affinity}, "former owner has set: spec.sessionAffinity."},
		"nothing stays":               {aWeb(adopting), []seenOption{aService(0)}, ""},
		"a Service that it has made":  {aWeb(), []seenOption{aService(0), affinity}, ""},
		"one that it does not own":    {aWeb(adopting), []seenOption{aService(0), affinity, func(seen *observation) { seen.service().OwnerReferences = nil }}, ""},
		"an adopted Service was lost": {aWeb(adopting), nil, ""},
	} {
		st := summarize(tc.ws, somethingSeen(append([]seenOption{aDeployment(a, a)}, tc.seen...)...), &plan{chosen: choice{template: a, desired: a}}, nil)
		got := ""
		if c := meta.FindStatusCondition(st.Conditions, webv1.ConditionAdopted); c != nil {
			got = c.Message
		}
		if !strings.HasSuffix(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: Adopted says %q, want %q", name, got, tc.want)
		}
	}
}

// TestNotKnown: it is Ready, and says what is between its URL and its Service, as long as nothing says that
// it works.
func TestNotKnown(t *testing.T) {
	offered := func(kind, list, condition, status string) seenOption {
		return func(seen *observation) {
			u := unstructuredOf(kind)
			u.Object["status"] = map[string]any{list: []any{map[string]any{"parentRef": map[string]any{"name": "edge"}, "conditions": []any{map[string]any{"type": condition, "status": status}}}}}
			seen.children[kind] = u
		}
	}
	addressed := func(seen *observation) {
		ingress := &networkingv1.Ingress{}
		ingress.Status.LoadBalancer.Ingress = []networkingv1.IngressLoadBalancerIngress{{IP: "192.0.2.80"}}
		seen.children["Ingress"] = ingress
	}
	balanced := func(seen *observation) {
		seen.service().Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.80"}}
	}
	ingress := func(ws *webv1.WebServer) { ws.Spec.Ingress = &webv1.IngressSpec{Host: "shop.example.com"} }
	route := func(ws *webv1.WebServer) { ws.Spec.Route = &webv1.RouteSpec{} }
	gateway := func(ws *webv1.WebServer) { ws.Spec.Gateway = &webv1.GatewaySpec{Name: "edge"} }
	balancer := func(ws *webv1.WebServer) { ws.Spec.Service = &webv1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer} }
	nothing := func(*observation) {}
	second := func(seen *observation) { seen.budgets = []string{"mine"} }
	other := disruption.Sentence([]string{"mine"})
	const unknown = ": whether clients get to the Service is not known"
	for name, tc := range map[string]struct {
		ws   webOption
		seen seenOption
		want string
	}{
		"a node port":               {func(*webv1.WebServer) {}, nothing, ""},
		"an Ingress":                {ingress, nothing, ". The Ingress has no address yet" + unknown},
		"an Ingress, addressed":     {ingress, addressed, ""},
		"a Route":                   {route, nothing, ". No router has admitted the Route yet" + unknown},
		"a Route, refused":          {route, offered(routeKind, "ingress", "Admitted", "False"), ". No router has admitted the Route yet" + unknown},
		"a Route, admitted":         {route, offered(routeKind, "ingress", "Admitted", "True"), ""},
		"an HTTPRoute":              {gateway, nothing, `. Gateway "edge" has not accepted the HTTPRoute yet` + unknown},
		"an HTTPRoute, left open":   {gateway, offered(httpRouteKind, "parents", "Accepted", "Unknown"), `. Gateway "edge" has not accepted the HTTPRoute yet` + unknown},
		"an HTTPRoute, accepted":    {gateway, offered(httpRouteKind, "parents", "Accepted", "True"), ""},
		"a second budget":           {func(*webv1.WebServer) {}, second, other},
		"that and an Ingress":       {ingress, second, ". The Ingress has no address yet" + unknown + other},
		"a load balancer":           {balancer, nothing, ". The load balancer has no address yet" + unknown},
		"a load balancer, in place": {balancer, balanced, ""},
	} {
		a := templateFor(tc.ws)
		st := summarize(aWeb(tc.ws), somethingSeen(aDeployment(a, a), aService(30010), tc.seen), &plan{chosen: choice{template: a, desired: a}}, nil)
		ready := meta.FindStatusCondition(st.Conditions, status.Ready)
		if want := "All pods are ready" + tc.want; ready.Status != metav1.ConditionTrue || ready.Message != want {
			t.Errorf("%s: %s %s: %q, want %q", name, ready.Status, ready.Reason, ready.Message, want)
		}
	}
}

// TestSaysHowToMakeRoom: of a rollout that no node has room for, and of nothing else.
func TestSaysHowToMakeRoom(t *testing.T) {
	a, b := templateFor(image("nginx:a")), templateFor(image("nginx:b"))
	stuck := somethingSeen(aDeployment(b, a, late), aService(30010), noRoom(b, 0))
	one := func(ws *webv1.WebServer) { ws.Spec.Replicas = new(int32(1)) }
	unavailable := func(ws *webv1.WebServer) { ws.Spec.Rollout.MaxUnavailable = 1 }
	const how, fails = "set rollout.maxUnavailable to 1", "requests fail"
	for name, tc := range map[string]struct {
		ws       *webv1.WebServer
		seen     observation
		how, not bool
	}{
		"a rollout":                      {aWeb(image("nginx:b"), good(a, noon)), stuck, true, false},
		"a rollout of one pod":           {aWeb(image("nginx:b"), good(a, noon), one), stuck, true, true},
		"a rollout that makes room":      {aWeb(image("nginx:b"), good(a, noon), unavailable), stuck, false, false},
		"the first rollout":              {aWeb(image("nginx:b")), stuck, false, false},
		"a pod of a good one is evicted": {aWeb(image("nginx:b"), good(b, noon)), stuck, false, false},
		"a pod that starts":              {aWeb(image("nginx:b"), good(a, noon)), somethingSeen(aDeployment(b, a, late), aService(30010), unready(b, 0)), false, false},
	} {
		next, err := decide(tc.ws, tc.seen)
		if err != nil {
			t.Fatal(err)
		}
		ready := meta.FindStatusCondition(summarize(tc.ws, tc.seen, next, nil).Conditions, status.Ready)
		if strings.Contains(ready.Message, how) != tc.how || strings.Contains(ready.Message, fails) != tc.not {
			t.Errorf("%s: %s: %s", name, ready.Reason, ready.Message)
		}
	}
}
