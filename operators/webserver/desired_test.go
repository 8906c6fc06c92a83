package webserver

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	webv1 "example.com/fairlead/api/web/v1"
)

func podOf(t *testing.T, ws *webv1.WebServer, in inputs) corev1.PodSpec {
	t.Helper()
	template, err := desiredTemplate(ws, in)
	if err != nil {
		t.Fatal(err)
	}
	var pod corev1.PodTemplateSpec
	if err := json.Unmarshal([]byte(template.json), &pod); err != nil {
		t.Fatal(err)
	}
	return pod.Spec
}

func TestPodsAreUnprivileged(t *testing.T) {
	spec := podOf(t, aWeb(), inputs{})
	if s := spec.SecurityContext; !*s.RunAsNonRoot || *s.RunAsUser != 101 || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		s.Sysctls[0] != (corev1.Sysctl{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}) {
		t.Errorf("pod security context %+v", s)
	}
	if s := spec.Containers[0].SecurityContext; *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || s.Capabilities.Drop[0] != "ALL" {
		t.Errorf("security context %+v", s)
	}

	usersOwn := podOf(t, aWeb(func(ws *webv1.WebServer) {
		ws.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(0))}}}
	}), inputs{})
	if diff := cmp.Diff(&corev1.PodSecurityContext{RunAsUser: new(int64(0))}, usersOwn.SecurityContext); diff != "" {
		t.Errorf("the template's own security context (-want +got):\n%s", diff)
	}
}

func TestPodsDrain(t *testing.T) {
	spec := podOf(t, aWeb(func(ws *webv1.WebServer) { ws.Spec.Rollout.DrainSeconds = 7 }), inputs{})
	if got := spec.Containers[0].Lifecycle.PreStop.Sleep.Seconds; got != 7 {
		t.Errorf("a pod drains for %d s, want 7", got)
	}
	if got := *spec.TerminationGracePeriodSeconds; got != 37 {
		t.Errorf("a pod has %d s to stop, want 37", got)
	}
}

func TestTheTemplateIsMerged(t *testing.T) {
	probe := &corev1.Probe{PeriodSeconds: 9}
	spec := podOf(t, aWeb(func(ws *webv1.WebServer) {
		ws.Spec.Port = 8080
		ws.Spec.Env = []corev1.EnvVar{{Name: "A", Value: "spec"}}
		ws.Spec.Probes = &webv1.ProbesSpec{Liveness: probe}
		ws.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "log", Image: "busybox"},
			{Name: serverContainer, Image: "ignored", Env: []corev1.EnvVar{{Name: "A", Value: "template"}, {Name: "B", Value: "template"}}},
		}}}
	}), inputs{})
	server := spec.Containers[1]
	if len(spec.Containers) != 2 || server.Image != "nginx:1" {
		t.Errorf("containers %+v", spec.Containers)
	}
	if diff := cmp.Diff([]corev1.EnvVar{{Name: "B", Value: "template"}, {Name: "A", Value: "spec"}}, server.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if server.Ports[0].ContainerPort != 8080 || server.ReadinessProbe.TCPSocket.Port.IntValue() != 8080 {
		t.Errorf("port %+v, probe %+v", server.Ports, server.ReadinessProbe)
	}
	if diff := cmp.Diff(probe, server.LivenessProbe); diff != "" {
		t.Errorf("liveness probe (-want +got):\n%s", diff)
	}
}

func TestInputsAreMounted(t *testing.T) {
	ws := aWeb(func(ws *webv1.WebServer) {
		ws.Spec.Content = &webv1.ContentSpec{Inline: "hello", Path: "/www"}
		ws.Spec.Config = &webv1.ConfigSpec{ConfigMap: "c", Path: "/etc/nginx/conf.d", Check: []string{"nginx", "-t"}}
		ws.Spec.TLS = &webv1.TLSSpec{SecretName: "s", Path: "/etc/nginx/tls"}
	})
	in := inputs{
		content: snapshotOf(ws, "content", configMapKind, "1"),
		config:  snapshotOf(ws, "config", configMapKind, "2"),
		tls:     snapshotOf(ws, "tls", secretKind, "3"),
		check:   []string{"nginx", "-t"},
	}
	spec := podOf(t, ws, in)
	got := map[string]string{}
	for _, m := range spec.Containers[0].VolumeMounts {
		for _, v := range spec.Volumes {
			switch {
			case v.Name != m.Name:
			case v.ConfigMap != nil:
				got[m.MountPath] = v.ConfigMap.Name
			case v.Secret != nil:
				got[m.MountPath] = v.Secret.SecretName
			}
		}
	}
	want := map[string]string{"/www": "web-content-1", "/etc/nginx/conf.d": "web-config-2", "/etc/nginx/tls": "web-tls-3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	check := spec.InitContainers[0]
	if diff := cmp.Diff(spec.Containers[0].VolumeMounts, check.VolumeMounts); diff != "" || check.Image != "nginx:1" || check.Command[0] != "nginx" {
		t.Errorf("the check %+v", check)
	}
	template, _ := desiredTemplate(ws, in)
	if !template.uses("web-tls-3") || template.uses("web-tls-4") {
		t.Error("the template does not know what it uses")
	}
}

// TestTheCheckHasResources: those of the server, but not in a template of version
// 0.0.1 that is in force.
func TestTheCheckHasResources(t *testing.T) {
	ws := aWeb(func(ws *webv1.WebServer) {
		ws.Spec.Config = &webv1.ConfigSpec{ConfigMap: "c", Path: "/etc/nginx/conf.d", Check: []string{"nginx", "-t"}}
		ws.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	})
	in := inputs{config: snapshotOf(ws, "config", configMapKind, "1"), check: []string{"nginx", "-t"}}
	spec := podOf(t, ws, in)
	if diff := cmp.Diff(spec.Containers[0].Resources, spec.InitContainers[0].Resources); diff != "" {
		t.Errorf("resources of the check (-server +check):\n%s", diff)
	}

	bare := in
	bare.as = asOf001
	now, _ := desiredTemplate(ws, in)
	old, _ := desiredTemplate(ws, bare)
	adopted := func(seen *observation) {
		aDeployment(podTemplate{}, podTemplate{})(seen)
		seen.deployment().Annotations[adoptedAnnotation] = old.revision
	}
	refused := *ws
	failed(old)(&refused)
	for name, tc := range map[string]struct {
		ws   *webv1.WebServer
		seen observation
		want podTemplate
	}{
		"a new one":                  {ws, somethingSeen(), now},
		"the old one runs":           {ws, somethingSeen(aDeployment(old, podTemplate{})), old},
		"the new one runs":           {ws, somethingSeen(aDeployment(now, old)), now},
		"back to the old one":        {ws, somethingSeen(aDeployment(templateFor(), old)), old},
		"another one runs":           {ws, somethingSeen(aDeployment(templateFor(), podTemplate{})), now},
		"the old one was put back":   {&refused, somethingSeen(aDeployment(templateFor(), podTemplate{})), old},
		"another's, when it was old": {ws, somethingSeen(adopted), old},
	} {
		tc.seen.inputs = in
		if got, err := requestedTemplate(tc.ws, tc.seen); err != nil || got != tc.want {
			t.Errorf("%s: revision %s, want %s (%v)", name, got.revision, tc.want.revision, err)
		}
	}
}

// TestLastWordsAreKept: in the pods of a new template, but not in those of version
// 0.0.2, which are not restarted for that.
func TestLastWordsAreKept(t *testing.T) {
	ws := aWeb(func(ws *webv1.WebServer) {
		ws.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "log"}, {Name: "mesh", TerminationMessagePolicy: corev1.TerminationMessageReadFile}}}}
	})
	got := map[string]corev1.TerminationMessagePolicy{}
	for _, c := range podOf(t, ws, inputs{}).Containers {
		got[c.Name] = c.TerminationMessagePolicy
	}
	want := map[string]corev1.TerminationMessagePolicy{"webserver": "FallbackToLogsOnError", "log": "FallbackToLogsOnError", "mesh": "File"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("termination message policies (-want +got):\n%s", diff)
	}

	old, err := desiredTemplate(ws, inputs{as: asOf002})
	if err != nil {
		t.Fatal(err)
	}
	if requested, err := requestedTemplate(ws, somethingSeen(aDeployment(old, podTemplate{}))); err != nil || requested != old {
		t.Errorf("a template of version 0.0.2 becomes %s (%v)", requested, err)
	}
	ws.Spec.Image = "nginx:2"
	if requested, err := requestedTemplate(ws, somethingSeen(aDeployment(old, podTemplate{}))); err != nil || !strings.Contains(requested.json, "FallbackToLogsOnError") {
		t.Errorf("the next template is %s (%v)", requested, err)
	}
}

// TestTheTemplateOf002 has the bytes that version 0.0.2 made: if they change,
// every web server that it left is restarted.
func TestTheTemplateOf002(t *testing.T) {
	ws := aWeb(func(ws *webv1.WebServer) {
		ws.Spec.Config = &webv1.ConfigSpec{ConfigMap: "c", Path: "/etc/nginx/conf.d", Check: []string{"nginx", "-t"}}
		ws.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	})
	in := inputs{config: snapshotOf(ws, "config", configMapKind, "1"), check: []string{"nginx", "-t"}}
	for as, want := range map[rendering]string{asOf002: "55d6256612", asOf001: "d5ba1cd793"} {
		in.as = as
		if got, err := desiredTemplate(ws, in); err != nil || got.revision != want {
			t.Errorf("revision %s, want %s (%v): %s", got.revision, want, err, got)
		}
	}
}

// TestTheSameSpecTheSameRevision: a revision is a pure function of what the
// pods are made of.
func TestTheSameSpecTheSameRevision(t *testing.T) {
	first := templateFor()
	scaled := templateFor(func(ws *webv1.WebServer) { ws.Spec.Replicas, ws.Generation = new(int32(9)), 7 })
	if first.revision != scaled.revision {
		t.Error("a change of the replicas is a new revision")
	}
	if first.revision == templateFor(image("nginx:2")).revision {
		t.Error("a change of the image is no new revision")
	}
}

// TestStrategy: how many pods more and less a rollout may have is as the spec says.
func TestStrategy(t *testing.T) {
	for name, tc := range map[string]struct {
		rollout            webv1.RolloutSpec
		surge, unavailable int
	}{
		"nothing is said":     {webv1.RolloutSpec{}, 1, 0},
		"room is made first":  {webv1.RolloutSpec{MaxUnavailable: 1}, 1, 1},
		"no pod more":         {webv1.RolloutSpec{MaxSurge: new(int32(0)), MaxUnavailable: 2}, 0, 2},
		"many pods at a time": {webv1.RolloutSpec{MaxSurge: new(int32(5))}, 5, 0},
	} {
		d, err := deployment(aWeb(func(ws *webv1.WebServer) { ws.Spec.Rollout = tc.rollout }), choice{template: templateFor()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Spec.Strategy.RollingUpdate; got.MaxSurge.IntValue() != tc.surge || got.MaxUnavailable.IntValue() != tc.unavailable {
			t.Errorf("%s: maxSurge %s, maxUnavailable %s", name, got.MaxSurge, got.MaxUnavailable)
		}
	}
}
