package pods

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ContainerCreating is the reason of a condition that reports a pod which its node cannot prepare. It is what kubectl get
// pods shows of it.
const ContainerCreating = "ContainerCreating"

// preparedWithin is how long a node may take to prepare a pod until that is reported: to attach and mount a volume of a
// cloud may take some of it.
const preparedWithin = 30 * time.Second

// Mount is an object that a pod cannot start without, because a volume is made of it.
type Mount struct{ Kind, Name string }

func (m Mount) String() string { return fmt.Sprintf("%s %q", m.Kind, m.Name) }

// Mounts are those of a pod.
func Mounts(pod *corev1.Pod) []Mount {
	var all []Mount
	add := func(kind, name string, optional *bool) {
		if m := (Mount{kind, name}); (optional == nil || !*optional) && !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	const configMap, secret = "ConfigMap", "Secret"
	for _, v := range pod.Spec.Volumes {
		if v.ConfigMap != nil {
			add(configMap, v.ConfigMap.Name, v.ConfigMap.Optional)
		}
		if v.Secret != nil {
			add(secret, v.Secret.SecretName, v.Secret.Optional)
		}
		if v.PersistentVolumeClaim != nil {
			add("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName, nil)
		}
		if v.Projected == nil {
			continue
		}
		for _, source := range v.Projected.Sources {
			if source.ConfigMap != nil {
				add(configMap, source.ConfigMap.Name, source.ConfigMap.Optional)
			}
			if source.Secret != nil {
				add(secret, source.Secret.Name, source.Secret.Optional)
			}
		}
	}
	// Kubernetes' own, which is in each namespace.
	return slices.DeleteFunc(all, func(m Mount) bool { return m == Mount{configMap, "kube-root-ca.crt"} })
}

// IsUnprepared says whether the node of a pod has not mounted its volumes yet, or has not connected it to the network:
// none of its containers starts before.
func IsUnprepared(pod *corev1.Pod) bool {
	is := condition(pod, corev1.PodReadyToStartContainers).Status == corev1.ConditionFalse &&
		pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil && !IsOver(pod)
	return is && !slices.ContainsFunc(Statuses(pod), func(c corev1.ContainerStatus) bool { return c.State.Running != nil })
}

// Unprepared says what keeps the node of a pod from preparing it: what it mounts and is known to be missing, or else, once
// that takes too long, what it mounts at all. Until then it says nothing, and when to look again. The words stay the same
// until the pod is prepared.
//
// Which mount fails, and why, the kubelet says in events only, which operators have no right to read.
func Unprepared(pod *corev1.Pod, missing []Mount, now time.Time) (words string, until time.Time) {
	if !IsUnprepared(pod) {
		return "", time.Time{}
	}
	mounts := Mounts(pod)
	if lacks := slices.DeleteFunc(slices.Clone(mounts), func(m Mount) bool { return !slices.Contains(missing, m) }); len(lacks) > 0 {
		verb := "does"
		if len(lacks) > 1 {
			verb = "do"
		}
		return fmt.Sprintf("node %q cannot mount its volumes: %s %s not exist", pod.Spec.NodeName, Listed(lacks, " and "), verb), time.Time{}
	}
	since := condition(pod, corev1.PodReadyToStartContainers).LastTransitionTime.Time
	if until = since.Add(preparedWithin); now.Before(until) {
		return "", until
	}
	words = fmt.Sprintf("node %q has not prepared its volumes or its network since %s", pod.Spec.NodeName, since.UTC().Format(time.RFC3339))
	if len(mounts) > 0 {
		words += fmt.Sprintf(" (it mounts %s)", Listed(mounts, ", "))
	}
	return words + fmt.Sprintf(": kubectl describe pod %s says why", pod.Name), time.Time{}
}

// mostMounts is how many are named.
const mostMounts = 5

// Listed are mounts in words, not too many.
func Listed(mounts []Mount, separator string) string {
	var names []string
	for _, m := range mounts[:min(len(mounts), mostMounts)] {
		names = append(names, m.String())
	}
	words := strings.Join(names, separator)
	if more := len(mounts) - mostMounts; more > 0 {
		words += fmt.Sprintf("%s%d more", separator, more)
	}
	return words
}
