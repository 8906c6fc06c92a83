package memcached

import (
	"regexp"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// versionTags are image tags that begin with a version of memcached.
var versionTags = regexp.MustCompile(`^v?([0-9]+)\.([0-9]+)\.([0-9]+)($|[-._+])`)

// versionOf reads memcached's version from the tag of an image; empty if the tag does not
// say.
func versionOf(image string) string {
	name, _, _ := strings.Cut(image, "@")
	i := strings.LastIndex(name, ":")
	if i < 0 || !versionTags.MatchString(name[i+1:]) {
		return ""
	}
	return strings.TrimPrefix(name[i+1:], "v")
}

// pulledVersion is what memcached itself said when the image was pulled on a node, or on
// any if that is empty: a tag may have been another image when another node pulled it.
func pulledVersion(pulls []corev1.Pod, image, node string) string {
	for _, pod := range pulls {
		if end := endOfPull(&pod); requestedImage(&pod, pullContainer) == image && end != nil && (node == "" || pod.Spec.NodeName == node) {
			if words := strings.Fields(end.Message); len(words) == 2 && words[0] == "memcached" {
				return words[1]
			}
		}
	}
	return ""
}

// keepsCache says whether a server of version to starts with the memory that
// one of version from has left. 1.6.25 changed what is in the file, and servers
// before that do not read it.
func keepsCache(from, to string) bool {
	return !isBefore(to, 1, 6, 25) || isBefore(from, 1, 6, 25)
}

// isBefore says whether a version is known to be before another one.
func isBefore(version string, than ...int) bool {
	numbers := versionTags.FindStringSubmatch(version)
	if numbers == nil {
		return false
	}
	for i, limit := range than {
		if n, err := strconv.Atoi(numbers[i+1]); err == nil && n != limit {
			return n < limit
		}
	}
	return false
}
