package pods

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DefaultPullPolicy is when the API server has an image pulled of which nothing else is said: always if its tag is latest,
// also beside a digest, or if it has neither.
func DefaultPullPolicy(image string) corev1.PullPolicy {
	name, _, hasDigest := strings.Cut(image[strings.LastIndex(image, "/")+1:], "@")
	_, tag, hasTag := strings.Cut(name, ":")
	if tag == "latest" || !hasTag && !hasDigest {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}
