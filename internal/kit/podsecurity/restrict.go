// Package podsecurity makes pods meet the restricted Pod Security Standard.
package podsecurity

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Restrict makes a pod meet the restricted Pod Security Standard, and run as that
// user and group, wherever it has no security context of its own: one that is
// given for the pod, or for a container, stays as it is. The containers that
// readOnly names get a root file system that cannot be written. It returns
// whether the pod had one of its own; if not, more can be added to it.
func Restrict(spec *corev1.PodSpec, user int64, readOnly ...string) (had bool) {
	had = spec.SecurityContext != nil
	if !had {
		spec.SecurityContext = &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			RunAsUser:      new(user),
			RunAsGroup:     new(user),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		}
	}
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if containers[i].SecurityContext != nil {
				continue
			}
			containers[i].SecurityContext = &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			}
			if slices.Contains(readOnly, containers[i].Name) {
				containers[i].SecurityContext.ReadOnlyRootFilesystem = new(true)
			}
		}
	}
	return had
}
