package webserver

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/podtemplate"
	"example.com/fairlead/internal/kit/status"
	"example.com/fairlead/internal/testkit"
)

// stories are all of them. They need the optional kinds of routes, see installOptionalKinds.
func stories(t testing.TB) []testkit.Scenario {
	t.Helper()
	return []testkit.Scenario{comesUp(), isTakenOver(), isAdopted(), isRepaired(), isReachedFromOutside(), changesItsInputs(aCertificate(t, "", "cert")), isRolledBack(), isTriedAgain(), isWithoutRoom(), isRestarted()}
}

// story is a WebServer called "web" with one pod.
func story(r *testkit.Run, options ...webOption) *webv1.WebServer {
	ws := aWeb(options...)
	ws.Namespace, ws.UID, ws.Generation, ws.Spec.Replicas = r.Namespace, "", 0, new(int32(1))
	// What is slow for other reasons than its image is not to be rolled back. It counts for
	// crashes of a new image, too.
	ws.Spec.Rollout.DeadlineSeconds = int32(min(r.Seconds(60), 24*60*60))
	return ws
}

func arranged(options ...webOption) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error { return r.Client.Create(ctx, story(r, options...)) }
}

func current(ctx context.Context, r *testkit.Run) (*webv1.WebServer, error) {
	var ws webv1.WebServer
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: "web"}, &ws)
	return &ws, err
}

func read[O client.Object](ctx context.Context, r *testkit.Run, name string, obj O) (O, error) {
	return obj, r.Client.Get(ctx, client.ObjectKey{Namespace: r.Namespace, Name: name}, obj)
}

// isReady holds when the condition Ready has the reason, for what the spec now is, and
// the Deployment has the image.
func isReady(reason, image string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		ws, err := current(ctx, r)
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(ws.Status.Conditions, status.Ready)
		if ready == nil || ready.Reason != reason || ready.ObservedGeneration != ws.Generation {
			return fmt.Errorf("generation %d: Ready is %+v, want %s", ws.Generation, ready, reason)
		}
		d, err := read(ctx, r, "web", &appsv1.Deployment{})
		if err != nil {
			return err
		}
		if have := templateOf(d.Spec.Template).image(); have != image {
			return fmt.Errorf("the Deployment has image %s, want %s", have, image)
		}
		if !isComplete(d) || d.Status.Replicas != 1 {
			return fmt.Errorf("%d of %d pods are available", d.Status.AvailableReplicas, d.Status.Replicas)
		}
		return nil
	}
}

func patched(patch string) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		return r.Client.Patch(ctx, story(r), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// nothingTwice holds at the end of every story: there is one of each child, no copy that
// nobody needs, and, once there was a rollout, the template for a rollback.
func nothingTwice(revisions int) func(context.Context, *testkit.Run) error {
	return func(ctx context.Context, r *testkit.Run) error {
		ws, err := current(ctx, r)
		if err != nil {
			return err
		}
		budgets := 0
		if hasBudget(ws) {
			budgets = 1
		}
		for _, kind := range []struct {
			list client.ObjectList
			want int
		}{
			{&appsv1.DeploymentList{}, 1}, {&policyv1.PodDisruptionBudgetList{}, budgets}, {&corev1.ServiceList{}, 1}, {&corev1.ConfigMapList{}, 0}, {&appsv1.ControllerRevisionList{}, revisions},
			{&autoscalingv2.HorizontalPodAutoscalerList{}, 0}, {&networkingv1.IngressList{}, 0}, {&corev1.SecretList{}, 0},
		} {
			if err := r.Client.List(ctx, kind.list, client.InNamespace(r.Namespace), client.HasLabels{podsOf}); err != nil {
				return err
			}
			if n := meta.LenList(kind.list); n != kind.want {
				return fmt.Errorf("%d in %T, want %d", n, kind.list, kind.want)
			}
		}
		return nil
	}
}

// comesUp is the plain story, with fields that are requested only for a while.
func comesUp() testkit.Scenario {
	return testkit.Scenario{
		Name: "comes-up",
		Arrange: arranged(func(ws *webv1.WebServer) {
			ws.Spec.Ingress = &webv1.IngressSpec{Host: "www.example.com", Path: "/"}
			ws.Spec.Autoscaling = &webv1.AutoscalingSpec{MinReplicas: 1, MaxReplicas: 2, TargetCPUUtilizationPercentage: 80}
			ws.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")}
		}),
		Steps: []testkit.Step{{
			Name: "another image, and less beside it", When: isReady(reasonReady, "nginx:1"),
			Do: patched(`{"spec":{"image":"nginx:2","ingress":null,"autoscaling":null,"disruption":{"enabled":false}}}`),
		}},
		Settled:  isReady(reasonReady, "nginx:2"),
		Check:    nothingTwice(1),
		EachLate: true,
		Timeout:  time.Minute,
	}
}

// isReachedFromOutside has what not every cluster can give it, for a while.
func isReachedFromOutside() testkit.Scenario {
	return testkit.Scenario{
		Name: "is-reached-from-outside",
		Arrange: arranged(func(ws *webv1.WebServer) {
			ws.Spec.Gateway = &webv1.GatewaySpec{Name: "public", Hostnames: []string{"www.example.com"}}
			ws.Spec.Route = &webv1.RouteSpec{Host: "www.example.com"}
		}),
		Steps: []testkit.Step{{
			Name: "no more", When: isReady(reasonReady, "nginx:1"), Do: patched(`{"spec":{"gateway":null,"route":null}}`),
		}},
		Settled: isReady(reasonReady, "nginx:1"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			for _, kind := range []string{httpRouteKind, routeKind} {
				if _, err := read(ctx, r, "web", unstructuredOf(kind)); !apierrors.IsNotFound(err) {
					return fmt.Errorf("%s is still there: %w", kind, err)
				}
			}
			return nothingTwice(0)(ctx, r)
		},
	}
}

// isTakenOver begins with what the tutorial's operator made.
func isTakenOver() testkit.Scenario {
	return testkit.Scenario{
		Name: "is-taken-over",
		Pods: func(*corev1.Pod) testkit.Outcome { return testkit.Stays() },
		Before: func(ctx context.Context, r *testkit.Run) error {
			ws := story(r)
			if err := r.Client.Create(ctx, ws); err != nil {
				return err
			}
			return makeTheTutorials(ctx, r.Client, ws)
		},
		Settled: isReady(reasonReady, "nginx:1"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			if starts := r.Kubelet.Starts(); len(starts) != 1 {
				return fmt.Errorf("%d pods were started, want 1", len(starts))
			}
			ws, err := current(ctx, r)
			if err != nil {
				return err
			}
			if meta.FindStatusCondition(ws.Status.Conditions, webv1.ConditionAdopted) == nil {
				return errors.New("no condition says that the Deployment was taken over")
			}
			return nil
		},
	}
}

// makeTheTutorials makes a Deployment as the tutorial's operator makes it.
func makeTheTutorials(ctx context.Context, c client.Client, ws *webv1.WebServer) error {
	labels := map[string]string{"app": "webserver", "webserver_cr": ws.Name}
	owner := []metav1.OwnerReference{*metav1.NewControllerRef(ws, webv1.GroupVersion.WithKind("WebServer"))}
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ws.Namespace, Name: ws.Name, OwnerReferences: owner},
		Spec: appsv1.DeploymentSpec{
			Replicas: ws.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
					Containers: []corev1.Container{{
						Name: "webserver", Image: ws.Spec.Image,
						SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
					}},
				},
			},
		},
	}
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: ws.Namespace, Name: ws.Name + "-service", OwnerReferences: owner},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Selector: labels,
			Ports: []corev1.ServicePort{{Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(80)}}},
	}
	return errors.Join(client.IgnoreAlreadyExists(c.Create(ctx, d)), client.IgnoreAlreadyExists(c.Create(ctx, s)))
}

// strayImage is one that no WebServer requests.
const strayImage = "nginx:3"

// isRepaired has its Service and its Deployment changed behind its back.
func isRepaired() testkit.Scenario {
	return testkit.Scenario{
		Name:    "is-repaired",
		Arrange: arranged(),
		Steps: []testkit.Step{{
			Name: "spoil", When: isReady(reasonReady, "nginx:1"),
			Do: func(ctx context.Context, r *testkit.Run) error {
				s, d := &corev1.Service{}, &appsv1.Deployment{}
				s.Namespace, s.Name, d.Namespace, d.Name = r.Namespace, "web-service", r.Namespace, "web"
				return errors.Join(
					r.Client.Patch(ctx, s, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"replace","path":"/spec/ports/0/port","value":8080}]`))),
					r.Client.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"webserver","image":"`+strayImage+`"}]}}}}`))))
			},
		}},
		Settled: func(ctx context.Context, r *testkit.Run) error {
			s, err := read(ctx, r, "web-service", &corev1.Service{})
			if err != nil {
				return err
			}
			if len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != 80 {
				return fmt.Errorf("the Service has ports %+v", s.Spec.Ports)
			}
			return isReady(reasonReady, "nginx:1")(ctx, r)
		},
		Check: nothingTwice(0),
	}
}

// changesItsInputs has a page that changes, and a certificate, and then neither.
func changesItsInputs(certificate *corev1.Secret) testkit.Scenario {
	return testkit.Scenario{
		Name: "changes-its-inputs",
		Arrange: func(ctx context.Context, r *testkit.Run) error {
			cert := certificate.DeepCopy()
			cert.Namespace = r.Namespace
			return errors.Join(r.Client.Create(ctx, cert), arranged(func(ws *webv1.WebServer) {
				ws.Spec.Content = &webv1.ContentSpec{Inline: "one", Path: "/www"}
				ws.Spec.TLS = &webv1.TLSSpec{SecretName: "cert", Path: "/etc/nginx/tls"}
			})(ctx, r))
		},
		Steps: []testkit.Step{
			{Name: "another page", When: isReady(reasonReady, "nginx:1"), Do: patched(`{"spec":{"content":{"inline":"two"}}}`)},
			{Name: "no page", When: isReady(reasonReady, "nginx:1"), Do: patched(`{"spec":{"content":null,"tls":null}}`)},
			{Name: "another image", When: isReady(reasonReady, "nginx:1"), Do: patched(`{"spec":{"image":"nginx:2"}}`)},
		},
		Settled: isReady(reasonReady, "nginx:2"),
		Check:   nothingTwice(1),
		Timeout: time.Minute,
	}
}

// aCertificate is a Secret with the certificate that Go's own test server has.
func aCertificate(t testing.TB, namespace, name string) *corev1.Secret {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	pair := server.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Type:       corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}),
			corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		},
	}
}

// runs says whether a pod's server has an image, from whatever mirror.
func runs(pod *corev1.Pod, image string) bool {
	return strings.HasSuffix(podtemplate.Container(&pod.Spec, serverContainer).Image, image)
}

// crashing has pods that become ready and then crash if their image is bad.
func crashing(pod *corev1.Pod) testkit.Outcome {
	if runs(pod, "nginx:bad") {
		return testkit.Fails(1500*time.Millisecond, 3)
	}
	return testkit.Stays()
}

// isTriedAgain has an image that was rolled back tried again, once.
func isTriedAgain() testkit.Scenario {
	return testkit.Scenario{
		Name:    "is-tried-again",
		Pods:    crashing,
		Arrange: arranged(),
		Steps: []testkit.Step{{
			Name: "a bad image", When: isReady(reasonReady, "nginx:1"), Do: patched(`{"spec":{"image":"nginx:bad"}}`),
		}, {
			Name: "again", When: isReady(reasonRolledBack, "nginx:1"), Do: patched(`{"metadata":{"annotations":{"` + webv1.AnnotationRetry + `":"now"}}}`),
		}},
		Settled: func(ctx context.Context, r *testkit.Run) error {
			ws, err := current(ctx, r)
			if err != nil {
				return err
			}
			if f := ws.Status.FailedRollout; f == nil || f.Retry != retryOf(ws) {
				return fmt.Errorf("failed rollout %+v", f)
			}
			return isReady(reasonRolledBack, "nginx:1")(ctx, r)
		},
		Check:   nothingTwice(1),
		Timeout: time.Minute,
	}
}

// isRolledBack gets an image that becomes ready and then crashes, and loses its
// Deployment after the rollback.
func isRolledBack() testkit.Scenario {
	return testkit.Scenario{
		Name:    "is-put-back",
		Pods:    crashing,
		Arrange: arranged(),
		Steps: []testkit.Step{{
			Name: "a bad image", When: isReady(reasonReady, "nginx:1"), Do: patched(`{"spec":{"image":"nginx:bad"}}`),
		}, {
			Name: "no Deployment", When: isReady(reasonRolledBack, "nginx:1"),
			Do: func(ctx context.Context, r *testkit.Run) error {
				return r.Client.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "web"}})
			},
		}},
		Settled: isReady(reasonRolledBack, "nginx:1"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			ws, err := current(ctx, r)
			if err != nil {
				return err
			}
			if f := ws.Status.FailedRollout; f == nil || f.Image != "nginx:bad" || f.Reason != crashLoop || ws.Status.LastGoodImage != "nginx:1" {
				return fmt.Errorf("failed rollout %+v, last good image %s", f, ws.Status.LastGoodImage)
			}
			bad := map[types.UID]bool{} // the ReplicaSets
			for _, start := range r.Kubelet.Starts() {
				if runs(start.Pod, "nginx:bad") {
					bad[metav1.GetControllerOf(start.Pod).UID] = true
				}
			}
			if len(bad) != 1 {
				return errors.New("the bad image was tried again")
			}
			return nothingTwice(1)(ctx, r)
		},
		Timeout: time.Minute,
	}
}

// roomFrom is a variable of the server's environment: when there is room for its pods.
const roomFrom = "ROOM_FROM"

// isWithoutRoom gets an image for which there is no room at first: it is rolled back, and tried again until there is.
func isWithoutRoom() testkit.Scenario {
	return testkit.Scenario{
		Name: "is-without-room",
		Pods: func(pod *corev1.Pod) testkit.Outcome {
			for _, v := range podtemplate.Container(&pod.Spec, serverContainer).Env {
				if from, err := time.Parse(time.RFC3339, v.Value); v.Name == roomFrom && err == nil && pod.CreationTimestamp.Time.Before(from) {
					return testkit.Stuck("ContainerCreating")
				}
			}
			return testkit.Stays()
		},
		Arrange: arranged(func(ws *webv1.WebServer) { ws.Spec.Rollout.PendingDeadlineSeconds = 1 }),
		Steps: []testkit.Step{{
			Name: "another image, without room", When: isReady(reasonReady, "nginx:1"),
			Do: func(ctx context.Context, r *testkit.Run) error {
				// The pods are only late, and never do anything wrong: there is no other verdict.
				return patched(fmt.Sprintf(`{"spec":{"image":"nginx:2","rollout":{"deadlineSeconds":5},"env":[{"name":%q,"value":%q}]}}`,
					roomFrom, r.Now().Add(6*time.Second).UTC().Format(time.RFC3339)))(ctx, r)
			},
		}},
		Settled: isReady(reasonReady, "nginx:2"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			ws, err := current(ctx, r)
			if err != nil {
				return err
			}
			if f := ws.Status.FailedRollout; f != nil {
				return fmt.Errorf("failed rollout %+v", f)
			}
			return nothingTwice(1)(ctx, r)
		},
		Timeout: time.Minute,
	}
}

// isRestarted is restarted by kubectl rollout restart, which is not repaired away.
func isRestarted() testkit.Scenario {
	const restartedAt, at = "kubectl.kubernetes.io/restartedAt", "2026-01-01T00:00:00Z"
	return testkit.Scenario{
		Name:    "is-restarted",
		Arrange: arranged(),
		Steps: []testkit.Step{{
			Name: "a restart", When: isReady(reasonReady, "nginx:1"),
			Do: func(ctx context.Context, r *testkit.Run) error {
				d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: "web"}}
				patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{%q:%q}}}}}`, restartedAt, at)
				return r.Client.Patch(ctx, d, client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
			},
		}},
		Settled: isReady(reasonReady, "nginx:1"),
		Check: func(ctx context.Context, r *testkit.Run) error {
			var pods corev1.PodList
			if err := r.Client.List(ctx, &pods, client.InNamespace(r.Namespace)); err != nil {
				return err
			}
			for _, pod := range pods.Items {
				if pod.DeletionTimestamp == nil && pod.Annotations[restartedAt] != at {
					return fmt.Errorf("pod %s is not of the restart", pod.Name)
				}
			}
			return nothingTwice(0)(ctx, r)
		},
	}
}
