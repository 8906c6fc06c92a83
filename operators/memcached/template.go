package memcached

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"example.com/fairlead/api/cache/v1alpha1"
	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/podsecurity"
	"example.com/fairlead/internal/kit/podtemplate"
)

const (
	// serverContainer is the container that serves; its name is the tutorial's.
	serverContainer   = "memcached"
	exporterContainer = "exporter"
	metricsPortName   = "metrics"

	// memcachedUser is the user and group memcache of the memcached images.
	memcachedUser = 11211

	cachePath    = "/cache" // where the memory is that outlives the process
	settingsPath = "/etc/memcached/settings"
	secretsPath  = "/etc/memcached/" // and the name of the role
	// stopSeconds is how long a server has to stop. One of 1 GiB that keeps
	// its cache takes half a second.
	stopSeconds = 60
)

// podTemplate is what a pod is to be, and what that means for one that is there.
type podTemplate struct {
	corev1.PodTemplateSpec
	rendering
	revision string
}

func (t podTemplate) server() *corev1.Container {
	return podtemplate.Container(&t.Spec, serverContainer)
}

func isWarm(mc *v1alpha1.Memcached) bool { return mc.Spec.Upgrade == v1alpha1.WarmUpgrade }

func isStable(mc *v1alpha1.Memcached) bool { return mc.Spec.Identity == v1alpha1.StableIdentity }

// desiredTemplate is the pod template that a Memcached requests: the user's, with the
// server added.
func desiredTemplate(mc *v1alpha1.Memcached) (podTemplate, error) {
	return templateWith(mc, renderings[0])
}

// templateWith is the template as one version of the operator renders it.
func templateWith(mc *v1alpha1.Memcached, r rendering) (podTemplate, error) {
	t := podTemplate{PodTemplateSpec: podtemplate.From(mc.Spec.PodTemplate, labels(mc)), rendering: r}
	t.Labels[identityLabel] = string(mc.Spec.Identity)
	spec := &t.Spec
	server := podtemplate.Main(spec, serverContainer)
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(stopSeconds))
	}
	if !r.isOf002 {
		podtemplate.NameAccount(spec)
	}
	podtemplate.WithoutToken(spec)
	if spec.TopologySpreadConstraints == nil {
		others := &metav1.LabelSelector{MatchLabels: selector(mc)}
		podtemplate.SpreadOverNodes(spec, others)
		if spec.Affinity == nil && !r.isOf002 {
			podtemplate.PreferOtherZones(spec, others)
		}
	}
	setServer(spec, server, mc, r)
	if mc.Spec.Metrics != nil {
		setExporter(spec, mc)
	}
	if !r.isOf002 {
		podtemplate.OnLinux(spec)
		podtemplate.KeepLastWords(spec.InitContainers...)
		podtemplate.KeepLastWords(spec.Containers...)
	}
	secure(spec)

	replace, err := replaceHash(mc, t.PodTemplateSpec, r)
	if err != nil {
		return t, err
	}
	t.Annotations[replaceAnnotation] = replace
	if isWarm(mc) {
		threads, connections := strconv.Itoa(int(mc.Spec.Threads)), strconv.Itoa(int(mc.Spec.MaxConnections))
		t.Annotations[threadsAnnotation], t.Annotations[connectionsAnnotation] = threads, connections
		t.Annotations[settingsAnnotation] = names.Hash(threads + "/" + connections)
	}
	if growsWithConnections(mc, r) {
		t.Annotations[limitAnnotation] = inMebibytes(neededMemory(mc, r))
	}
	if growsLive(mc) {
		t.Annotations[memoryAnnotation] = mebibytes(mc)
	}
	if !r.isOf002 {
		for _, name := range []string{serverContainer, exporterContainer} {
			if image := podtemplate.Container(spec, name).Image; image != "" {
				t.Annotations[imageAnnotation+name] = image
			}
		}
	}
	if t.revision, err = hashTemplate(t.PodTemplateSpec); err != nil {
		return t, err
	}
	t.Annotations[revisionAnnotation] = t.revision
	return t, nil
}

// replaceHash is the hash of what cannot be changed in a running pod: all but
// the settings, the image of the exporter and, as the case may be, the image of
// the server or its memory, unless the user's template says how much.
func replaceHash(mc *v1alpha1.Memcached, template corev1.PodTemplateSpec, r rendering) (string, error) {
	fixed := *template.DeepCopy()
	if isWarm(mc) {
		podtemplate.Container(&fixed.Spec, serverContainer).Image = ""
	}
	if mc.Spec.Metrics != nil {
		podtemplate.Container(&fixed.Spec, exporterContainer).Image = ""
	}
	if own := ownMemory(mc, r); (growsLive(mc) || growsWithConnections(mc, r)) && own.Limits == nil {
		resources := podtemplate.Container(&fixed.Spec, serverContainer).Resources
		delete(resources.Limits, corev1.ResourceMemory)
		if own.Requests == nil {
			delete(resources.Requests, corev1.ResourceMemory)
		}
	}
	return hashTemplate(fixed)
}

func hashTemplate(template corev1.PodTemplateSpec) (string, error) {
	data, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("encode the pod template: %w", err)
	}
	return names.Hash(string(data)), nil
}

// imageOf is the image of the server.
func imageOf(mc *v1alpha1.Memcached) string {
	if mc.Spec.Image != "" {
		return mc.Spec.Image
	}
	return "memcached:" + mc.Spec.Version
}

// setServer sets what the spec says about the server's container.
func setServer(spec *corev1.PodSpec, server *corev1.Container, mc *v1alpha1.Memcached, r rendering) {
	server.Image = imageOf(mc)
	server.Ports = slices.DeleteFunc(server.Ports, func(p corev1.ContainerPort) bool {
		return p.Name == portName || p.ContainerPort == mc.Spec.Port
	})
	server.Ports = append(server.Ports, corev1.ContainerPort{Name: portName, ContainerPort: mc.Spec.Port, Protocol: corev1.ProtocolTCP})
	if server.ReadinessProbe == nil {
		server.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(mc.Spec.Port)}},
			PeriodSeconds: 1,
		}
	}
	setMemory(server, mc, r)

	args := arguments(mc, r)
	if script := startScript(mc, r); script != "" {
		server.Command = []string{"/bin/sh", "-c", script, "memcached"}
		server.Args = args
	} else {
		server.Command, server.Args = []string{"memcached"}, args
	}
	for _, role := range roles(mc) {
		mount(spec, server, role.name, secretsPath+role.name, corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: r.secretName(mc, role.name), DefaultMode: new(int32(0o440))},
		})
	}
	if mc.Spec.TLS != nil && r.isOf002 {
		setEnv(server, "POD_IP", &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"})
	}
	if growsLive(mc) {
		mount(spec, server, "settings", settingsPath, settingsFile("memory", memoryAnnotation))
		setEnv(server, "MEMORY", annotation(memoryAnnotation))
	}
	if !isWarm(mc) {
		return
	}
	// The memory file and the little that lies beside it.
	size := mc.Spec.Memory.DeepCopy()
	size.Add(*resource.NewQuantity(8<<20, resource.BinarySI))
	mount(spec, server, "cache", cachePath, corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &size},
	})
	mount(spec, server, "settings", settingsPath, settingsFile("hash", settingsAnnotation))
	setEnv(server, "THREADS", annotation(threadsAnnotation))
	setEnv(server, "MAX_CONNECTIONS", annotation(connectionsAnnotation))
	setEnv(server, "SETTINGS", annotation(settingsAnnotation))
	if server.Lifecycle == nil {
		server.Lifecycle = &corev1.Lifecycle{}
	}
	server.Lifecycle.PreStop = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/bin/sh", "-c", stopScript}}}
}

// settingsFile is a volume in which a running server sees an annotation change.
func settingsFile(file, name string) corev1.VolumeSource {
	return corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{
		Items: []corev1.DownwardAPIVolumeFile{{Path: file, FieldRef: annotation(name)}},
	}}
}

func setEnv(server *corev1.Container, name string, from *corev1.ObjectFieldSelector) {
	podtemplate.SetEnv(server, corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: from}})
}

func annotation(name string) *corev1.ObjectFieldSelector {
	return &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.annotations['" + name + "']"}
}

func mount(spec *corev1.PodSpec, server *corev1.Container, name, path string, source corev1.VolumeSource) {
	name = "memcached-" + name
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	server.VolumeMounts = append(server.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: path != cachePath})
}

// setExporter adds the container with the metrics, to which the template's of that name gives what is not said here:
// its resources, for example, where a quota wants them of every container.
func setExporter(spec *corev1.PodSpec, mc *v1alpha1.Memcached) {
	address := mc.Spec.Port
	if mc.Spec.TLS != nil {
		address = localPort(mc)
	}
	if podtemplate.Container(spec, exporterContainer).Name == "" {
		spec.Containers = append(spec.Containers, corev1.Container{Name: exporterContainer})
	}
	c := podtemplate.Main(spec, exporterContainer)
	c.Image = mc.Spec.Metrics.Image
	c.Args = []string{
		fmt.Sprintf("--memcached.address=127.0.0.1:%d", address),
		fmt.Sprintf("--web.listen-address=:%d", mc.Spec.Metrics.Port),
	}
	podtemplate.SetPorts(c, corev1.ContainerPort{Name: metricsPortName, ContainerPort: mc.Spec.Metrics.Port, Protocol: corev1.ProtocolTCP})
}

// secure makes the pod meet the restricted Pod Security Standard, wherever the
// template has no security context of its own.
func secure(spec *corev1.PodSpec) {
	if !podsecurity.Restrict(spec, memcachedUser, serverContainer, exporterContainer) {
		spec.SecurityContext.FSGroup = new(int64(memcachedUser))
	}
}

func selector(mc *v1alpha1.Memcached) map[string]string {
	return map[string]string{appLabel: "memcached", podsOf: names.LabelValue(mc.Name)}
}

// labels are on everything that a Memcached owns.
func labels(mc *v1alpha1.Memcached) map[string]string {
	all := podtemplate.Labels(name, mc.Name)
	maps.Copy(all, selector(mc))
	return all
}
