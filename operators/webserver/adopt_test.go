package webserver

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/loop"
	"example.com/fairlead/internal/kit/status"
)

// toAdopt is what a user made by hand, as the API server stores it, but for what edit changes.
func toAdopt(edit func(*appsv1.Deployment, *corev1.PodSpec, *corev1.Service)) seenOption {
	return func(seen *observation) {
		d, s := createdByHand("shop"), exposedByHand("shop")
		d.UID, s.UID, d.Spec.Replicas = "d", "s", new(int32(3))
		d.Status = appsv1.DeploymentStatus{Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
		pod := &d.Spec.Template.Spec
		pod.RestartPolicy, pod.DNSPolicy, pod.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default-scheduler"
		pod.TerminationGracePeriodSeconds, pod.SecurityContext = new(int64(30)), &corev1.PodSecurityContext{}
		c := &pod.Containers[0]
		c.ImagePullPolicy, c.TerminationMessagePath, c.TerminationMessagePolicy = corev1.PullIfNotPresent, "/dev/termination-log", corev1.TerminationMessageReadFile
		if edit != nil {
			edit(d, pod, s)
		}
		seen.adoptee = adoptee{deployment: d, service: s}
	}
}

// TestAdopt: what can be described is adopted by one write for each object, of metadata; anything else is refused, and
// nothing is written at all.
func TestAdopt(t *testing.T) {
	type edit = func(*appsv1.Deployment, *corev1.PodSpec, *corev1.Service)
	probe := &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString(httpName), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
	chart := func(d *appsv1.Deployment, pod *corev1.PodSpec, s *corev1.Service) {
		labels := map[string]string{"app.kubernetes.io/name": "nginx", "app.kubernetes.io/instance": "web"}
		d.Spec.Selector.MatchLabels, s.Spec.Selector = labels, labels
		d.Spec.Template.Labels = map[string]string{
			"app.kubernetes.io/name": "nginx", "app.kubernetes.io/instance": "web", "app.kubernetes.io/managed-by": "Helm", "helm.sh/chart": "nginx-1",
		}
		pod.Containers[0].Ports = []corev1.ContainerPort{{Name: httpName, ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
		pod.Containers[0].ReadinessProbe = probe.DeepCopy()
		pod.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: new(int64(1001))}
		pod.Volumes = []corev1.Volume{{Name: "blocks", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "blocks"}, DefaultMode: new(int32(420)),
		}}}}
		pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "blocks", MountPath: "/opt/bitnami/nginx/conf/server_blocks"}}
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Spec.Ports = []corev1.ServicePort{{Name: httpName, Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromString(httpName)}}
	}
	asChart := func(ws *webv1.WebServer) {
		adopting(ws)
		ws.Spec.Adopt.Selector = map[string]string{"app.kubernetes.io/name": "nginx", "app.kubernetes.io/instance": "web"}
		ws.Spec.Port, ws.Spec.Service.Type = 8080, corev1.ServiceTypeLoadBalancer
		ws.Spec.Probes = &webv1.ProbesSpec{Readiness: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString(httpName)}}}}
		ws.Spec.Config = &webv1.ConfigSpec{ConfigMap: "blocks", Path: "/opt/bitnami/nginx/conf/server_blocks", Check: []string{"nginx", "-t"}}
		ws.Spec.PodTemplate = &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"helm.sh/chart": "nginx-1"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{
				{Name: serverContainer, SecurityContext: &corev1.SecurityContext{RunAsUser: new(int64(1001))}}}},
		}
	}
	container := func(change func(*corev1.Container)) edit {
		return func(_ *appsv1.Deployment, pod *corev1.PodSpec, _ *corev1.Service) { change(&pod.Containers[0]) }
	}
	for name, tc := range map[string]struct {
		edit edit
		ws   webOption
		want []string // the refusals; none if it is adopted
	}{
		"by kubectl":        {},
		"pulled always":     {edit: container(func(c *corev1.Container) { c.ImagePullPolicy = corev1.PullAlways }), want: []string{`spec.podTemplate.spec.containers[webserver].imagePullPolicy must be "Always"`}},
		"by the chart":      {edit: chart, ws: asChart},
		"the chart's paths": {edit: chart, want: []string{"spec.adopt.selector must be", "spec.podTemplate.metadata.labels[helm.sh/chart] must be \"nginx-1\"", "spec.port must be 8080", "spec.probes.readiness.httpGet must be as in the Deployment", "securityContext.runAsUser must be 1001", "spec.podTemplate.spec.volumes[blocks] must be", "spec.service.type must be LoadBalancer", "volumeMounts[/opt/bitnami", "leads to, http (8080)"}},
		"another image":     {edit: container(func(c *corev1.Container) { c.Image = "nginx:0" }), want: []string{`spec.image must be "nginx:0"`}},
		"a variable":        {edit: container(func(c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "A", Value: "hush"}} }), want: []string{"spec.env[A] must be as in the Deployment"}},
		"arguments":         {edit: container(func(c *corev1.Container) { c.Args = []string{"-g", "daemon off;"} }), want: []string{"spec.podTemplate.spec.containers[webserver].args must be as in the Deployment"}},
		"a port's name":     {edit: container(func(c *corev1.Container) { c.Ports = []corev1.ContainerPort{{Name: "www", ContainerPort: 80}} }), want: []string{"the name www, which a WebServer calls http"}},
		"a sidecar": {edit: func(_ *appsv1.Deployment, pod *corev1.PodSpec, _ *corev1.Service) {
			pod.Containers = append(pod.Containers, corev1.Container{Name: "log", Image: "busybox"})
		}, want: []string{"which container is the server cannot be told"}},
		"a sidecar that is described": {edit: func(_ *appsv1.Deployment, pod *corev1.PodSpec, _ *corev1.Service) {
			pod.Containers = append(pod.Containers, corev1.Container{Name: "log", Image: "busybox:1"})
		}, ws: func(ws *webv1.WebServer) {
			adopting(ws)
			ws.Spec.PodTemplate = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "log", Image: "busybox:1"}}}}
		}},
		"a toleration": {edit: func(_ *appsv1.Deployment, pod *corev1.PodSpec, _ *corev1.Service) {
			pod.Tolerations = []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
		}, want: []string{"spec.podTemplate.spec.tolerations must be as in the Deployment"}},
		"a label": {edit: func(d *appsv1.Deployment, _ *corev1.PodSpec, _ *corev1.Service) {
			d.Spec.Template.Labels = map[string]string{"app": "web", "tier": "front"}
		}, want: []string{`spec.podTemplate.metadata.labels[tier] must be "front"`}},
		"replicas": {edit: func(d *appsv1.Deployment, _ *corev1.PodSpec, _ *corev1.Service) {
			d.Spec.Replicas = new(int32(5))
			d.Status.UpdatedReplicas, d.Status.Replicas, d.Status.AvailableReplicas = 5, 5, 5
		}, want: []string{"spec.replicas must be 5"}},
		"in a rollout": {edit: func(d *appsv1.Deployment, _ *corev1.PodSpec, _ *corev1.Service) { d.Status.UpdatedReplicas = 1 }, want: []string{"is not complete"}},
		"paused":       {edit: func(d *appsv1.Deployment, _ *corev1.PodSpec, _ *corev1.Service) { d.Spec.Paused = true }, want: []string{"is paused"}},
		"recreated": {edit: func(d *appsv1.Deployment, _ *corev1.PodSpec, _ *corev1.Service) {
			d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType
		}, want: []string{"strategy is Recreate"}},
		"controlled": {edit: func(d *appsv1.Deployment, _ *corev1.PodSpec, _ *corev1.Service) {
			d.OwnerReferences = []metav1.OwnerReference{{Kind: "Blog", Name: "b", Controller: new(true)}}
		}, want: []string{`controlled by Blog "b"`}},
		"without a word of its owner": {edit: func(d *appsv1.Deployment, _ *corev1.PodSpec, s *corev1.Service) {
			d.Annotations = nil
			s.Annotations[webv1.AnnotationAdoptBy] = "blog"
		}, want: []string{
			"the Deployment does not say that it may be adopted: kubectl annotate deployment web webserver-operator/adopt-by=web",
			"the Service does not say that it may be adopted: kubectl annotate service web webserver-operator/adopt-by=web",
		}},
		"expressions": {edit: func(d *appsv1.Deployment, _ *corev1.PodSpec, _ *corev1.Service) {
			d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}
		}, want: []string{"matchExpressions"}},
		"a named port": {edit: func(_ *appsv1.Deployment, _ *corev1.PodSpec, s *corev1.Service) { s.Spec.Ports[0].Name = "www" }, want: []string{`has the name "www"`}},
		"other pods": {edit: func(_ *appsv1.Deployment, _ *corev1.PodSpec, s *corev1.Service) {
			s.Spec.Selector = map[string]string{"app": "blog"}
		}, want: []string{"the Service's selector is"}},
		"another port": {edit: func(_ *appsv1.Deployment, _ *corev1.PodSpec, s *corev1.Service) { s.Spec.Ports[0].Port = 8080 }, want: []string{"spec.service.port must be 8080"}},
		"to another port": {edit: func(_ *appsv1.Deployment, _ *corev1.PodSpec, s *corev1.Service) {
			s.Spec.Ports[0].TargetPort = intstr.FromInt32(8080)
		}, want: []string{"leads to, 8080 (8080)"}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.ws == nil {
				tc.ws = adopting
			}
			ws := aWeb(tc.ws)
			seen := somethingSeen(toAdopt(tc.edit))
			if c := ws.Spec.Config; c != nil {
				seen.inputs.config = &snapshot{kind: configMapKind, name: "web-config-1"}
			}
			next, err := decide(ws, seen)
			if err != nil {
				t.Fatal(err)
			}
			var writes []string
			for _, w := range next.Writes {
				writes = append(writes, loop.Name(w))
			}
			if want := "patch Deployment/adopt, patch Service/adopt"; len(tc.want) == 0 && strings.Join(writes, ", ") != want || len(tc.want) > 0 && len(writes) > 0 {
				t.Errorf("writes %v, refusals %v", writes, next.refusals)
			}
			said := summarize(ws, seen, next, nil).Conditions
			if len(tc.want) == 0 {
				return
			}
			for _, kind := range []string{webv1.ConditionAdopted, status.Ready} {
				c := meta.FindStatusCondition(said, kind)
				if c == nil || c.Status != metav1.ConditionFalse || c.Reason != reasonNotAdopted {
					t.Errorf("the condition %s is %+v", kind, c)
				}
			}
			if len(next.refusals) != len(tc.want) {
				t.Errorf("refusals %q, want %q", next.refusals, tc.want)
			}
			for _, words := range tc.want {
				if !strings.Contains(strings.Join(next.refusals, "; "), words) {
					t.Errorf("refusals %q, want %q", next.refusals, words)
				}
			}
		})
	}
}
