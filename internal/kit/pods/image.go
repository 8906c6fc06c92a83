package pods

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DefaultPullPolicy is when the API server has an image pulled of which nothing else is said.
func DefaultPullPolicy(image string) corev1.PullPolicy {
	_, tag, hasTag := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	if !strings.Contains(image, "@") && (!hasTag || tag == "latest") {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
