package objects

import (
	"fmt"
	"strconv"
	"strings"

	"example.com/fairlead/api/cache/v1alpha1"
)

// This file is about how memcached is started and stopped in its container.

// PortName is the name of the port that clients connect to.
const PortName = "memcached"

// Arguments are memcached's. Kubernetes puts the values of $(…) in at each
// start of the container.
func Arguments(mc *v1alpha1.Memcached, r Rendering) []string {
	threads, connections := strconv.Itoa(int(mc.Spec.Threads)), strconv.Itoa(int(mc.Spec.MaxConnections))
	if IsWarm(mc) {
		threads, connections = "$(THREADS)", "$(MAX_CONNECTIONS)"
	}
	memory := mebibytes(mc)
	if GrowsLive(mc) {
		memory = "$(MEMORY)"
	}
	args := []string{
		"-m", memory,
		"-I", strconv.FormatInt(mc.Spec.MaxItemSize.Value(), 10),
		"-c", connections,
		"-t", threads,
		"-p", strconv.Itoa(int(mc.Spec.Port)),
	}
	if mc.Spec.Auth != nil {
		args = append(args, "-Y", secretsPath+"auth/"+UsersFile)
	}
	if mc.Spec.TLS != nil {
		args = append(args, "-Z", "-o", "ssl_chain_cert="+secretsPath+"tls/tls.crt,ssl_key="+secretsPath+"tls/tls.key",
			"-l", fmt.Sprintf("%s,notls:127.0.0.1:%d", r.listens(), localPort(mc)))
	}
	if IsWarm(mc) {
		args = append(args, "-e", cachePath+"/memory")
	}
	return append(args, mc.Spec.ExtraArgs...)
}

func mebibytes(mc *v1alpha1.Memcached) string { return inMebibytes(mc.Spec.Memory) }

// GrowsLive says whether a server can be given more memory while it runs. With a
// memory file memcached cannot, and a Deployment's pods are all of one template.
func GrowsLive(mc *v1alpha1.Memcached) bool { return IsStable(mc) && !IsWarm(mc) }

// localPort is where a server with TLS takes plain connections, from within its
// pod only: for the reload of its certificate and for the exporter.
func localPort(mc *v1alpha1.Memcached) int32 {
	port := int32(11210)
	for port == mc.Spec.Port || mc.Spec.Metrics != nil && port == mc.Spec.Metrics.Port {
		port--
	}
	return port
}

// The start script ends as memcached, so memcached has its process number and
// gets its signals. What has to happen while memcached runs is done by a loop
// beside it, once a second, without a program where the shell alone can.
const (
	// waitScript: memcached refuses its memory when it starts in the second in
	// which it stopped. The file is there only after a stop that kept the cache.
	waitScript = `
stopped=$(sed -n 's/^Kstop_time //p' /cache/memory.meta 2>/dev/null)
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	[ "$(date +%s)" -gt "${stopped:-0}" ] && break
	sleep 0.1
done
echo $$ >/cache/pid
`
	// settingsScript: other settings are a stop that keeps the cache. Kubernetes
	// starts the container again, with the new ones. At first the file may still
	// have those of before this start: only a change counts.
	settingsScript = `
	read -r now </etc/memcached/settings/hash
	if [ "$now" != "$settings" ]; then
		settings=$now
		[ "$now" = "$SETTINGS" ] || kill -USR1 $$
	fi
`
	// linkScript: a Secret's volume changes by a link to another folder.
	linkScript = `ROLE=$(cd -P /etc/memcached/ROLE/..data && pwd)
`
	// usersScript: SIGHUP makes memcached read its users again.
	usersScript = `
	now=$(cd -P /etc/memcached/auth/..data && pwd)
	if [ "$now" != "$auth" ]; then
		auth=$now
		kill -HUP $$
	fi
`
	// certificateScript: only a command makes memcached read its certificate
	// again. It is repeated until it is answered: the users may be new, too.
	certificateScript = `
	now=$(cd -P /etc/memcached/tls/..data && pwd)
	if [ "$now" != "$tls" ] && try refresh_certs; then
		tls=$now
	fi
`
	// memoryScript: more memory is a command, too.
	memoryScript = `
	read -r now </etc/memcached/settings/memory
	if [ "$now" != "$memory" ] && try "cache_memlimit $now"; then
		memory=$now
	fi
`
	// askScript logs in as the first user, if there are users. Alpine's image
	// has nc, Debian's has bash. There is no timeout in it: busybox's leaves a
	// process behind, of which memcached, being process 1, takes no notice when
	// it ends. A command that fails is repeated ever more slowly.
	askScript = `ask() {
	{
		if [ -f /etc/memcached/auth/users ]; then
			IFS= read -r login </etc/memcached/auth/users
			printf 'set login 0 0 %d\r\n%s %s\r\n' ${#login} "${login%%:*}" "${login#*:}"
		fi
		printf '%s\r\nquit\r\n' "$1"
	} | if command -v nc >/dev/null; then
		nc -w 5 127.0.0.1 PORT
	else
		bash -c 'exec 3<>/dev/tcp/127.0.0.1/PORT && cat >&3 && while read -r -t 5 answer <&3; do echo "$answer"; done'
	fi
}
skip=0 pause=1
try() {
	if [ "$skip" -gt 0 ]; then
		skip=$((skip - 1))
		return 1
	fi
	if ask "$1" | grep -q '^OK'; then
		pause=1
		return 0
	fi
	skip=$pause
	[ "$pause" -ge 32 ] || pause=$((pause * 2))
	return 1
}
`
	// stopScript must not return before memcached is gone: a SIGTERM, which the
	// kubelet sends next, would overtake the stop and lose the cache.
	stopScript = `pid=$(cat /cache/pid); kill -USR1 "$pid"; while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done`
)

// StartScript is empty where memcached can be started without a shell.
func StartScript(mc *v1alpha1.Memcached, r Rendering) string {
	var begin, loop string
	if IsWarm(mc) {
		begin, loop = waitScript+"read -r settings </etc/memcached/settings/hash\n", settingsScript
	}
	for _, role := range Roles(mc) {
		begin += strings.ReplaceAll(linkScript, "ROLE", role.Name)
	}
	asks := mc.Spec.TLS != nil || GrowsLive(mc)
	switch {
	case mc.Spec.Auth == nil:
	case asks && !r.IsOf002:
		loop += strings.Replace(usersScript, "auth=$now\n", "auth=$now skip=0 pause=1\n", 1) // the login may have been wrong
	default:
		loop += usersScript
	}
	port := mc.Spec.Port
	if mc.Spec.TLS != nil {
		port = localPort(mc)
		loop += certificateScript
	}
	if GrowsLive(mc) {
		begin += "memory=$MEMORY\n"
		loop += memoryScript
	}
	if asks {
		ask := askScript
		if r.IsOf002 {
			ask, loop = askScriptOf002, asOf002.Replace(loop)
		}
		begin += strings.ReplaceAll(ask, "PORT", strconv.Itoa(int(port)))
	}
	if loop == "" {
		return ""
	}
	script := strings.TrimPrefix(begin, "\n") + "(while sleep 1; do" + strings.TrimSuffix(strings.ReplaceAll(loop, "\n\n", "\n"), "\n") + "\ndone) &\nexec memcached \"$@\"\n"
	// Kubernetes makes $$ in a command $, so that $$(NAME) can be written.
	return strings.ReplaceAll(script, "$$", "$$$$")
}
