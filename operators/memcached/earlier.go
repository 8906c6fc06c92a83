package memcached

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/fairlead/api/cache/v1alpha1"
)

// This file is about what earlier versions of the operator made. It goes with 0.2.0,
// which nobody upgrades to from 0.0.2.
//
// A template that renders to something else would replace the pods, with empty caches,
// because the operator was upgraded. So a pool is rendered as it was, until a change of
// its spec replaces its pods anyway.

// rendering is how a version of the operator made a template of a spec.
type rendering struct {
	// secretName is the name of the Secret that is mounted for a role.
	secretName func(*v1alpha1.Memcached, string) string
	// isOf002 is true for 0.0.2 and before: its loop leaves a zombie at each
	// command, fails with a password that ends in a colon, and repeats a command
	// every second; the kubelet does not know a container's last words; pods are
	// scheduled to nodes of any operating system; the memory of the container does not
	// depend on maxConnections, nor on what the user's template says; and with TLS a
	// server answers at the pod's first address only.
	isOf002 bool
}

// renderings are all of them, the present one first.
var renderings = []rendering{
	{secretName: copyName},
	{secretName: copyName, isOf002: true},
	// 0.0.1 mounted the user's own Secret where that has the name that the copy
	// would have.
	{secretName: firstCopyName, isOf002: true},
}

// nextTemplate is the template that the servers are to have: of the rendering by
// which servers that are there need not be replaced.
func nextTemplate(mc *v1alpha1.Memcached, seen observation) (podTemplate, error) {
	for _, r := range renderings {
		if t, err := templateWith(mc, r); err != nil || isInUse(mc, seen, t) {
			return t, err
		}
	}
	return desiredTemplate(mc)
}

// isInUse says whether servers, or the object that makes them, are of a template,
// or of one that differs from it only in what is changed in place.
func isInUse(mc *v1alpha1.Memcached, seen observation, t podTemplate) bool {
	d, s := seen.deployment(), seen.statefulSet()
	revision, template := d.Annotations[revisionAnnotation], d.Spec.Template.Annotations
	if isStable(mc) {
		revision, template = s.Annotations[revisionAnnotation], s.Spec.Template.Annotations
	}
	if revision == t.revision || template[replaceAnnotation] == t.Annotations[replaceAnnotation] {
		return true
	}
	for _, pod := range seen.pods {
		if pod.DeletionTimestamp == nil && pod.Annotations[replaceAnnotation] == t.Annotations[replaceAnnotation] {
			return true
		}
	}
	return false
}

// endedBy002 is when 0.0.2 made a server end for other settings, if it was the last to
// do that: it did not note when it changed a pod.
func endedBy002(pod *corev1.Pod) (time.Time, bool) {
	ended, ok := timeIn(pod, endedAnnotation)
	return ended, ok && pod.Annotations[changedAnnotation] == ""
}

// listens are the addresses at which memcached takes encrypted connections: all, of any
// family, as it does without TLS.
func (r rendering) listens() string {
	if r.isOf002 {
		return "$(POD_IP),127.0.0.1"
	}
	return "*"
}

// asOf002 makes a loop that of 0.0.2.
var asOf002 = strings.NewReplacer(
	"try refresh_certs;", "ask refresh_certs | grep -q '^OK';",
	"try \"cache_memlimit $now\";", "ask \"cache_memlimit $now\" | grep -q '^OK';",
)

const askScriptOf002 = `ask() {
	{
		if [ -f /etc/memcached/auth/users ]; then
			IFS=: read -r user password </etc/memcached/auth/users
			printf 'set login 0 0 %d\r\n%s %s\r\n' $((${#user} + ${#password} + 1)) "$user" "$password"
		fi
		printf '%s\r\nquit\r\n' "$1"
	} | if command -v nc >/dev/null; then
		timeout 5 nc 127.0.0.1 PORT
	else
		timeout 5 bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT && cat >&3 && cat <&3'
	fi
}
`
