package webserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	webv1 "example.com/fairlead/api/web/v1"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/podsecurity"
	"example.com/fairlead/internal/kit/podtemplate"
)

const (
	// serverContainer is the container that serves; its name is the tutorial's.
	serverContainer = "webserver"
	// checkContainer checks the configuration before the server starts.
	checkContainer = "check-config"
	// nginxUser is the user and group nginx of the nginx images.
	nginxUser = 101

	// httpName and httpsName are what the ports are called, in the pods and in
	// the Service.
	httpName, httpsName = "http", "https"
	httpsPort           = 443
	// volumePrefix begins the names of the volumes that the operator adds.
	volumePrefix = "webserver-"
	// stopSeconds is how long a pod has for the requests at hand, once it is
	// drained.
	stopSeconds = 30
)

// writable are the folders that nginx writes to, as built by its own project
// and by Debian. Everything else is read-only.
var writable = map[string]string{"cache": "/var/cache/nginx", "lib": "/var/lib/nginx", "run": "/run", "tmp": "/tmp"}

// podTemplate is a pod template as it is kept and compared.
type podTemplate struct {
	// json is the template, without the revision that follows from it.
	json string
	// revision is the hash of it.
	revision string
}

// templateFrom is the template with that JSON; none if it is empty.
func templateFrom(json string) podTemplate {
	if json == "" {
		return podTemplate{}
	}
	return podTemplate{json: json, revision: names.Hash(json)}
}

// keptIn is the template that a ControllerRevision has. Its fields come back in another
// order than they were written in, and a Deployment that got them so would have its pods'
// template under another revision than the pods, and than status.
func keptIn(r appsv1.ControllerRevision) podTemplate {
	t := podTemplate{json: string(r.Data.Raw), revision: r.Annotations[revisionAnnotation]}
	if template, err := podtemplate.Read(t.json); err == nil {
		if written := templateOf(*template); written.is(t) {
			return written
		}
	}
	return t
}

func (t podTemplate) isNone() bool { return t.revision == "" }

func (t podTemplate) is(other podTemplate) bool { return t.revision == other.revision }

// image is the image of the server.
func (t podTemplate) image() string {
	template, err := podtemplate.Read(t.json)
	if err != nil {
		return ""
	}
	if i := serverIn(&template.Spec, nil); i >= 0 {
		return template.Spec.Containers[i].Image
	}
	return ""
}

// uses says whether the pods mount a snapshot of that name.
func (t podTemplate) uses(snapshot string) bool { return slices.Contains(t.copies(), snapshot) }

// copies are the names of the snapshots that the pods mount.
func (t podTemplate) copies() []string {
	template, err := podtemplate.Read(t.json)
	if err != nil {
		return nil
	}
	var all []string
	for _, v := range template.Spec.Volumes {
		switch {
		case !slices.Contains([]string{volumePrefix + "content", volumePrefix + "config", volumePrefix + "tls"}, v.Name): // the user's own
		case v.ConfigMap != nil:
			all = append(all, v.ConfigMap.Name)
		case v.Secret != nil:
			all = append(all, v.Secret.SecretName)
		}
	}
	return all
}

// desiredTemplate is the pod template that a WebServer requests: the user's with the
// server added, and with what keeps requests safe around it.
func desiredTemplate(ws *webv1.WebServer, in inputs) (podTemplate, error) {
	pod := podtemplate.From(ws.Spec.PodTemplate, podLabels(ws))
	spec := &pod.Spec
	server := podtemplate.Main(spec, serverContainer)
	drain := ws.Spec.Rollout.DrainSeconds
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(drain + stopSeconds)
	}
	if in.as == today {
		podtemplate.NameAccount(spec)
	}
	podtemplate.WithoutToken(spec)
	setServer(server, ws, drain)
	mount(spec, server, ws, in)
	if in.checked() {
		check := corev1.Container{
			Name: checkContainer, Image: server.Image, ImagePullPolicy: server.ImagePullPolicy, Command: in.check,
			Env: server.Env, EnvFrom: server.EnvFrom, VolumeMounts: server.VolumeMounts, SecurityContext: server.SecurityContext,
			// What it prints is what the user reads.
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		}
		if in.as != asOf001 { // a quota may want them of every container
			check.Resources = corev1.ResourceRequirements{Limits: server.Resources.Limits, Requests: server.Resources.Requests}
		}
		spec.InitContainers = append(spec.InitContainers, check)
	}
	secure(spec)
	if in.as == today {
		podtemplate.OnLinux(spec)
		podtemplate.KeepLastWords(spec.InitContainers...)
		podtemplate.KeepLastWords(spec.Containers...)
	}

	data, err := json.Marshal(pod)
	if err != nil {
		return podTemplate{}, fmt.Errorf("encode the pod template: %w", err)
	}
	return templateFrom(string(data)), nil
}

// requestedTemplate is the template that the spec requests now. A template of an earlier
// version of the operator that is in force stays, until the spec changes: an upgrade of
// the operator restarts no pod.
func requestedTemplate(ws *webv1.WebServer, seen observation) (podTemplate, error) {
	inForce := []string{currentTemplate(seen).revision, seen.deployment().Annotations[adoptedAnnotation]}
	if failed := ws.Status.FailedRollout; failed != nil {
		inForce = append(inForce, failed.Revision)
	}
	var all []podTemplate
	for _, as := range []rendering{today, asOf002, asOf001} {
		in := seen.inputs
		if in.as = as; as != today && in.isGenerated {
			in.config = in.generatedOf002
		}
		template, err := desiredTemplate(ws, in)
		if err != nil || slices.Contains(inForce, template.revision) {
			return template, err
		}
		all = append(all, template)
	}
	// The template for a rollback comes after those in force.
	for _, template := range all {
		if template.is(seen.good) {
			return template, nil
		}
	}
	return all[0], nil
}

// setServer sets what the spec says about the server's container.
func setServer(server *corev1.Container, ws *webv1.WebServer, drain int64) {
	server.Image = ws.Spec.Image
	ports := []corev1.ContainerPort{{Name: httpName, ContainerPort: ws.Spec.Port, Protocol: corev1.ProtocolTCP}}
	if ws.Spec.TLS != nil {
		ports = append(ports, corev1.ContainerPort{Name: httpsName, ContainerPort: httpsPort, Protocol: corev1.ProtocolTCP})
	}
	podtemplate.SetPorts(server, ports...)
	podtemplate.SetEnv(server, ws.Spec.Env...)
	podtemplate.SetResources(server, ws.Spec.Resources)
	if probes := ws.Spec.Probes; probes != nil {
		for to, from := range map[**corev1.Probe]*corev1.Probe{
			&server.ReadinessProbe: probes.Readiness, &server.LivenessProbe: probes.Liveness, &server.StartupProbe: probes.Startup,
		} {
			if from != nil {
				*to = from.DeepCopy()
			}
		}
	}
	if server.ReadinessProbe == nil {
		server.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(ws.Spec.Port)}},
			PeriodSeconds: 1,
		}
	}
	if server.Lifecycle == nil {
		server.Lifecycle = &corev1.Lifecycle{}
	}
	if server.Lifecycle.PreStop == nil {
		// The server continues to serve while all clients learn that it is leaving. Built
		// into the kubelet, so the image needs no shell.
		server.Lifecycle.PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: drain}}
	}
}

// drains says whether the pods of a Deployment continue to serve while they leave.
func drains(d *appsv1.Deployment) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Containers, func(c corev1.Container) bool {
		return c.Lifecycle != nil && c.Lifecycle.PreStop != nil
	})
}

// mount gives the server its files and the folders that it writes to, except
// where the user's template already mounts something.
func mount(spec *corev1.PodSpec, server *corev1.Container, ws *webv1.WebServer, in inputs) {
	add := func(name, path string, source corev1.VolumeSource, readOnly bool) {
		if slices.ContainsFunc(server.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path }) {
			return
		}
		name = volumePrefix + name
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
		server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
	}
	configMap := func(s *snapshot) corev1.VolumeSource {
		return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: s.name}}}
	}
	if in.content != nil {
		add("content", ws.Spec.Content.Path, configMap(in.content), true)
	}
	if in.config != nil {
		add("config", configPath(ws), configMap(in.config), true)
	}
	if in.tls != nil {
		add("tls", ws.Spec.TLS.Path, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: in.tls.name}}, true)
	}
	for _, name := range []string{"cache", "lib", "run", "tmp"} {
		add(name, writable[name], corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}, false)
	}
}

// secure makes the pod meet the restricted Pod Security Standard, wherever the
// template has no security context of its own. The sysctl lets a user that is
// not root listen on port 80.
func secure(spec *corev1.PodSpec) {
	if podsecurity.Restrict(spec, nginxUser, serverContainer, checkContainer) {
		return
	}
	spec.SecurityContext.FSGroup = new(int64(nginxUser))
	if !spec.HostNetwork {
		spec.SecurityContext.Sysctls = []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}
	}
}

// selector is that of a Deployment to adopt, or what the tutorial's operator selects by, so
// that its objects can be taken over.
func selector(ws *webv1.WebServer) map[string]string {
	if ws.Spec.Adopt != nil {
		return ws.Spec.Adopt.Selector
	}
	return tutorialLabels(ws)
}

func tutorialLabels(ws *webv1.WebServer) map[string]string {
	return map[string]string{"app": "webserver", podsOf: names.LabelValue(ws.Name)}
}

// labels are on everything that a WebServer owns.
func labels(ws *webv1.WebServer) map[string]string {
	all := podtemplate.Labels(name, ws.Name)
	maps.Copy(all, tutorialLabels(ws))
	return all
}

// podLabels are those of the pods: the selector's values take precedence.
func podLabels(ws *webv1.WebServer) map[string]string {
	all := labels(ws)
	maps.Copy(all, selector(ws))
	return all
}
