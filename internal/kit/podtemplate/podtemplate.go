// Package podtemplate puts what an operator needs into the pod template of its
// user, the same way for all. What the user's template says counts, but for the
// fields that the operator's own spec has.
package podtemplate

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/fairlead/internal/kit/names"
	"example.com/fairlead/internal/kit/run"
)

// From is a copy of the user's template, which may be nil, with these labels, and
// without a name of its own.
func From(user *corev1.PodTemplateSpec, labels map[string]string) corev1.PodTemplateSpec {
	t := corev1.PodTemplateSpec{}
	if user != nil {
		t = *user.DeepCopy()
	}
	t.Name, t.Namespace = "", ""
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	if t.Annotations == nil {
		t.Annotations = map[string]string{}
	}
	for name, value := range labels {
		t.Labels[name] = value
	}
	return t
}

// Main is the container of that name, which is added in front if there is none. Its
// image is pulled only where it is not there yet, unless it says otherwise.
func Main(spec *corev1.PodSpec, name string) *corev1.Container {
	i := slices.IndexFunc(spec.Containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		spec.Containers = slices.Insert(spec.Containers, 0, corev1.Container{Name: name})
		i = 0
	}
	if spec.Containers[i].ImagePullPolicy == "" {
		spec.Containers[i].ImagePullPolicy = corev1.PullIfNotPresent
	}
	return &spec.Containers[i]
}

// Container is the container of that name; an empty one if there is none.
func Container(spec *corev1.PodSpec, name string) *corev1.Container {
	for i := range spec.Containers {
		if spec.Containers[i].Name == name {
			return &spec.Containers[i]
		}
	}
	return &corev1.Container{}
}

// NameAccount has the service account under the name that counts, also where the user gave it under the deprecated one.
func NameAccount(spec *corev1.PodSpec) {
	spec.ServiceAccountName = cmp.Or(spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = ""
}

// WithoutToken keeps the token of the default service account out of the pod. Who
// names an account wants its token.
func WithoutToken(spec *corev1.PodSpec) {
	if spec.ServiceAccountName == "" && spec.AutomountServiceAccountToken == nil {
		spec.AutomountServiceAccountToken = new(false)
	}
}

// OnLinux has a pod scheduled to a node of Linux, unless it asks for an operating system itself: what the operators
// run is made for Linux, and would hang on a node of another one.
func OnLinux(spec *corev1.PodSpec) {
	if spec.OS != nil && spec.OS.Name != corev1.Linux || spec.NodeSelector[corev1.LabelOSStable] != "" {
		return
	}
	if spec.NodeSelector == nil {
		spec.NodeSelector = map[string]string{}
	}
	spec.NodeSelector[corev1.LabelOSStable] = string(corev1.Linux)
}

// SpreadOverNodes has the scheduler prefer nodes that have fewer of the pods that it selects.
func SpreadOverNodes(spec *corev1.PodSpec, pods *metav1.LabelSelector) {
	spec.TopologySpreadConstraints = append(spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: pods,
	})
}

// PreferOtherZones has the scheduler prefer zones that have fewer of the pods that it selects, where nodes have zones.
// It is no topology spread constraint: a node without a zone would be left out of all of the pod's, also of that
// for nodes (requireAllTopologies in the scheduler's plugin PodTopologySpread).
func PreferOtherZones(spec *corev1.PodSpec, pods *metav1.LabelSelector) {
	preferred := &antiAffinity(spec).PreferredDuringSchedulingIgnoredDuringExecution
	*preferred = append(*preferred, corev1.WeightedPodAffinityTerm{
		Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{LabelSelector: pods, TopologyKey: corev1.LabelTopologyZone},
	})
}

// RequireOtherNodes keeps a pod off the nodes that have one of the pods that it selects, even if it cannot be scheduled then.
func RequireOtherNodes(spec *corev1.PodSpec, pods *metav1.LabelSelector) {
	required := &antiAffinity(spec).RequiredDuringSchedulingIgnoredDuringExecution
	*required = append(*required, corev1.PodAffinityTerm{LabelSelector: pods, TopologyKey: corev1.LabelHostname})
}

// antiAffinity is that of a pod, which has one afterwards.
func antiAffinity(spec *corev1.PodSpec) *corev1.PodAntiAffinity {
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.PodAntiAffinity == nil {
		spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	}
	return spec.Affinity.PodAntiAffinity
}

// SetEnv sets variables, in place of those of the same names.
func SetEnv(c *corev1.Container, variables ...corev1.EnvVar) {
	for _, variable := range variables {
		c.Env = slices.DeleteFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == variable.Name })
	}
	c.Env = append(c.Env, variables...)
}

// SetPorts puts ports first, in place of those of the same names or numbers.
func SetPorts(c *corev1.Container, ports ...corev1.ContainerPort) {
	for _, port := range ports {
		c.Ports = slices.DeleteFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == port.Name || p.ContainerPort == port.ContainerPort
		})
	}
	c.Ports = append(ports, c.Ports...)
}

// SetResources sets resources, if there are any to set.
func SetResources(c *corev1.Container, resources corev1.ResourceRequirements) {
	if resources.Limits != nil || resources.Requests != nil || resources.Claims != nil {
		c.Resources = *resources.DeepCopy()
	}
}

// KeepLastWords has the kubelet keep the end of the log of a container that fails
// without a termination message, so that status can report it.
func KeepLastWords(containers ...corev1.Container) {
	for i := range containers {
		if containers[i].TerminationMessagePolicy == "" {
			containers[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
		}
	}
}

// Labels are those of everything that belongs to an object of an operator.
func Labels(operator, owner string) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name":     operator,
		"app.kubernetes.io/instance": names.LabelValue(owner),
		run.ManagedByLabel:           run.ManagedBy(operator),
	}
}
