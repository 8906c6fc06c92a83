package objects

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
	// ServerContainer is the container that serves; its name is the tutorial's.
	ServerContainer = "memcached"
	// ExporterContainer is the container that serves metrics.
	ExporterContainer = "exporter"
	metricsPortName   = "metrics"

	// memcachedUser is the user and group memcache of the memcached images.
	memcachedUser = 11211

	cachePath    = "/cache" // where the memory is that outlives the process
	settingsPath = "/etc/memcached/settings"
	secretsPath  = "/etc/memcached/" // and the name of the role
	// StopSeconds is how long a server has to stop. One of 1 GiB that keeps
	// its cache takes half a second.
	StopSeconds = 60
)

// PodTemplate is what a pod is to be, and what that means for one that is there.
type PodTemplate struct {
	corev1.PodTemplateSpec
	Rendering
	Revision string
}

// Server is the container that serves.
func (t PodTemplate) Server() *corev1.Container {
	return podtemplate.Container(&t.Spec, ServerContainer)
}

// IsWarm says whether servers keep their caches through an upgrade.
func IsWarm(mc *v1alpha1.Memcached) bool { return mc.Spec.Upgrade == v1alpha1.WarmUpgrade }

// IsStable says whether servers have names that stay, as those of a StatefulSet do.
func IsStable(mc *v1alpha1.Memcached) bool { return mc.Spec.Identity == v1alpha1.StableIdentity }

// DesiredTemplate is the pod template that a Memcached requests: the user's, with the
// server added.
func DesiredTemplate(mc *v1alpha1.Memcached) (PodTemplate, error) {
	return TemplateWith(mc, Renderings[0])
}

// TemplateWith is the template as one version of the operator renders it.
func TemplateWith(mc *v1alpha1.Memcached, r Rendering) (PodTemplate, error) {
	t := PodTemplate{PodTemplateSpec: podtemplate.From(mc.Spec.PodTemplate, Labels(mc)), Rendering: r}
	t.Labels[IdentityLabel] = string(mc.Spec.Identity)
	spec := &t.Spec
	server := podtemplate.Main(spec, ServerContainer)
	if spec.TerminationGracePeriodSeconds == nil {
		spec.TerminationGracePeriodSeconds = new(int64(StopSeconds))
	}
	if !r.IsOf002 {
		podtemplate.NameAccount(spec)
	}
	podtemplate.WithoutToken(spec)
	if spec.TopologySpreadConstraints == nil {
		others := &metav1.LabelSelector{MatchLabels: Selector(mc)}
		podtemplate.SpreadOverNodes(spec, others)
		if spec.Affinity == nil && !r.IsOf002 {
			podtemplate.PreferOtherZones(spec, others)
		}
	}
	setServer(spec, server, mc, r)
	if mc.Spec.Metrics != nil {
		setExporter(spec, mc)
	}
	if !r.IsOf002 {
		podtemplate.OnLinux(spec)
		podtemplate.KeepLastWords(spec.InitContainers...)
		podtemplate.KeepLastWords(spec.Containers...)
	}
	secure(spec)

	replace, err := replaceHash(mc, t.PodTemplateSpec, r)
	if err != nil {
		return t, err
	}
	t.Annotations[ReplaceAnnotation] = replace
	if IsWarm(mc) {
		threads, connections := strconv.Itoa(int(mc.Spec.Threads)), strconv.Itoa(int(mc.Spec.MaxConnections))
		t.Annotations[ThreadsAnnotation], t.Annotations[ConnectionsAnnotation] = threads, connections
		t.Annotations[SettingsAnnotation] = names.Hash(threads + "/" + connections)
	}
	if growsWithConnections(mc, r) {
		t.Annotations[LimitAnnotation] = inMebibytes(NeededMemory(mc, r))
	}
	if GrowsLive(mc) {
		t.Annotations[MemoryAnnotation] = mebibytes(mc)
	}
	if !r.IsOf002 {
		for _, name := range []string{ServerContainer, ExporterContainer} {
			if image := podtemplate.Container(spec, name).Image; image != "" {
				t.Annotations[ImageAnnotation+name] = image
			}
		}
	}
	if t.Revision, err = hashTemplate(t.PodTemplateSpec); err != nil {
		return t, err
	}
	t.Annotations[RevisionAnnotation] = t.Revision
	return t, nil
}

// replaceHash is the hash of what cannot be changed in a running pod: all but
// the settings, the image of the exporter and, as the case may be, the image of
// the server or its memory, unless the user's template says how much.
func replaceHash(mc *v1alpha1.Memcached, template corev1.PodTemplateSpec, r Rendering) (string, error) {
	fixed := *template.DeepCopy()
	if IsWarm(mc) {
		podtemplate.Container(&fixed.Spec, ServerContainer).Image = ""
	}
	if mc.Spec.Metrics != nil {
		podtemplate.Container(&fixed.Spec, ExporterContainer).Image = ""
	}
	if own := OwnMemory(mc, r); (GrowsLive(mc) || growsWithConnections(mc, r)) && own.Limits == nil {
		resources := podtemplate.Container(&fixed.Spec, ServerContainer).Resources
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

// ImageOf is the image of the server.
func ImageOf(mc *v1alpha1.Memcached) string {
	if mc.Spec.Image != "" {
		return mc.Spec.Image
	}
	return "memcached:" + mc.Spec.Version
}

// setServer sets what the spec says about the server's container.
func setServer(spec *corev1.PodSpec, server *corev1.Container, mc *v1alpha1.Memcached, r Rendering) {
	server.Image = ImageOf(mc)
	server.Ports = slices.DeleteFunc(server.Ports, func(p corev1.ContainerPort) bool {
		return p.Name == PortName || p.ContainerPort == mc.Spec.Port
	})
	server.Ports = append(server.Ports, corev1.ContainerPort{Name: PortName, ContainerPort: mc.Spec.Port, Protocol: corev1.ProtocolTCP})
	if server.ReadinessProbe == nil {
		server.ReadinessProbe = &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(mc.Spec.Port)}},
			PeriodSeconds: 1,
		}
	}
	setMemory(server, mc, r)

	args := Arguments(mc, r)
	if script := StartScript(mc, r); script != "" {
		server.Command = []string{"/bin/sh", "-c", script, "memcached"}
		server.Args = args
	} else {
		server.Command, server.Args = []string{"memcached"}, args
	}
	for _, role := range Roles(mc) {
		mount(spec, server, role.Name, secretsPath+role.Name, corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: r.secretName(mc, role.Name), DefaultMode: new(int32(0o440))},
		})
	}
	if mc.Spec.TLS != nil && r.IsOf002 {
		setEnv(server, "POD_IP", &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "status.podIP"})
	}
	if GrowsLive(mc) {
		mount(spec, server, "settings", settingsPath, settingsFile("memory", MemoryAnnotation))
		setEnv(server, "MEMORY", annotation(MemoryAnnotation))
	}
	if !IsWarm(mc) {
		return
	}
	// The memory file and the little that lies beside it.
	size := mc.Spec.Memory.DeepCopy()
	size.Add(*resource.NewQuantity(8<<20, resource.BinarySI))
	mount(spec, server, "cache", cachePath, corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: &size},
	})
	mount(spec, server, "settings", settingsPath, settingsFile("hash", SettingsAnnotation))
	setEnv(server, "THREADS", annotation(ThreadsAnnotation))
	setEnv(server, "MAX_CONNECTIONS", annotation(ConnectionsAnnotation))
	setEnv(server, "SETTINGS", annotation(SettingsAnnotation))
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
	if podtemplate.Container(spec, ExporterContainer).Name == "" {
		spec.Containers = append(spec.Containers, corev1.Container{Name: ExporterContainer})
	}
	c := podtemplate.Main(spec, ExporterContainer)
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
	if !podsecurity.Restrict(spec, memcachedUser, ServerContainer, ExporterContainer) {
		spec.SecurityContext.FSGroup = new(int64(memcachedUser))
	}
}

// Selector selects the pods of the servers.
func Selector(mc *v1alpha1.Memcached) map[string]string {
	return map[string]string{AppLabel: "memcached", PodsOf: names.LabelValue(mc.Name)}
}

// Labels are on everything that a Memcached owns.
func Labels(mc *v1alpha1.Memcached) map[string]string {
	all := podtemplate.Labels(Name, mc.Name)
	maps.Copy(all, Selector(mc))
	return all
}
