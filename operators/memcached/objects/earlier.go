package objects

import (
	"strings"

	"example.com/fairlead/api/cache/v1alpha1"
)

// This file is about what earlier versions of the operator made. It goes with 0.2.0,
// which nobody upgrades to from 0.0.2.
//
// A template that renders to something else would replace the pods, with empty caches,
// because the operator was upgraded. So a pool is rendered as it was, until a change of
// its spec replaces its pods anyway.

// Rendering is how a version of the operator made a template of a spec.
type Rendering struct {
	// secretName is the name of the Secret that is mounted for a role.
	secretName func(*v1alpha1.Memcached, string) string
	// IsOf002 is true for 0.0.2 and before: its loop leaves a zombie at each
	// command, fails with a password that ends in a colon, and repeats a command
	// every second; the kubelet does not know a container's last words; pods are
	// scheduled to nodes of any operating system; the memory of the container does not
	// depend on maxConnections, nor on what the user's template says; and with TLS a
	// server answers at the pod's first address only.
	IsOf002 bool
}

// Renderings are all of them, the present one first.
var Renderings = []Rendering{
	{secretName: CopyName},
	{secretName: CopyName, IsOf002: true},
	// 0.0.1 mounted the user's own Secret where that has the name that the copy
	// would have.
	{secretName: firstCopyName, IsOf002: true},
}

// listens are the addresses at which memcached takes encrypted connections: all, of any
// family, as it does without TLS.
func (r Rendering) listens() string {
	if r.IsOf002 {
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
