#!/bin/sh
# Says what this machine lacks for a make target, before anything is built:
# one line for each finding, with the command that mends it. It needs nothing
# but what every Debian has, and leaves nothing.
#
# Usage: hack/doctor.sh [--quiet] demo|up|test|ci|all
#
# With --quiet it says nothing when all is well. DOCTOR_ROOT is for its tests.
set -u
cd "$(dirname "$0")/.." || exit 1
quiet=
[ "${1:-}" != --quiet ] || { quiet=yes; shift; }
target=${1:-all}
root=${DOCTOR_ROOT:-}
findings=''
# Set when a node cannot run here, whatever is installed: other ways are named then.
no_node=''

make="make $target"
[ "$target" != all ] || make='make ci'

has() { command -v "$1" >/dev/null 2>&1; }
# wants TARGET...: is it one of these, or all of them?
wants() { case " $* all " in *" $target "*) true ;; *) false ;; esac; }
fine() { [ -n "$quiet" ] || printf 'ok  %s\n' "$*"; }
lacks() {
	findings="$findings
  - $*"
	[ -n "$quiet" ] || printf '!!  %s\n' "$*"
}
done_here() {
	[ -n "$findings" ] || exit 0
	{
		[ -z "$quiet" ] || printf '%s cannot work on this machine yet, and has built nothing:%s\n(make doctor lists all that is checked; %s DOCTOR=true goes on all the same.)\n' "$make" "$findings" "$make"
		[ -z "$no_node" ] || printf '%s\n' 'Where that cannot be changed, these work:' \
			'  a cluster of yours: docs/install.md, or without an image: KUBECONFIG=FILE make install run' \
			'  the tests that need no node: make unit, and with a real API server: make first-tests'
	} >&2
	exit 1
}

in_container=''
if [ -e "$root/.dockerenv" ] || [ -e "$root/run/.containerenv" ]; then in_container=yes; fi
privileged='sudo'
[ -z "$in_container" ] || privileged='docker run --privileged'
# modprobe NAME...: the kernel loads what it needs by itself if it is there.
modprobe() {
	if [ -n "$in_container" ]; then
		printf 'modprobe -a %s, on the machine that runs this container' "$*"
	else
		printf 'modprobe -a %s, or after an upgrade of the kernel: reboot' "$*"
	fi
}

check_system() {
	if [ "$(uname -s)" != Linux ]; then
		no_node=yes
		lacks "the local cluster needs Linux"
		done_here
	fi
	missing=''
	for program in apt-get dpkg-deb mount unshare; do has "$program" || missing="$missing $program"; done
	if [ -n "$missing" ]; then
		no_node=yes
		lacks "no$missing: the local cluster needs Debian, or a system made from it"
	else
		fine "a system with apt-get, dpkg-deb, mount and unshare"
	fi
}

check_packages() {
	id=$(sed -n 's/^ID=//p' "$root/etc/os-release" 2>/dev/null | tr -d '"')
	if [ "$id" != debian ] && [ -z "${DEBIAN_MIRROR:-}" ] &&
		! grep -Eqs '/debian/?( |$)' "$root/etc/apt/sources.list" "$root"/etc/apt/sources.list.d/*.list "$root"/etc/apt/sources.list.d/*.sources; then
		lacks "apt's sources name no archive of Debian's (packages of Debian 12 and 13 are unpacked, not installed): $make DEBIAN_MIRROR=URL, see https://www.debian.org/mirror/list"
	else
		fine "an archive of Debian's packages"
	fi
	if [ "$id" != debian ] && [ ! -e "$root/usr/share/keyrings/debian-archive-keyring.gpg" ]; then
		lacks "no keys to check Debian's packages with: apt-get install debian-archive-keyring"
	fi
}

# version N.M as a number
number() { echo "$1" | awk -F. '{ print $1 * 1000 + $2 }'; }

check_go() {
	want=$(sed -n 's/^go \([0-9]*\.[0-9]*\).*/\1/p' go.mod)
	if ! has go; then
		# shellcheck disable=SC2016 # the user's shell has it
		lacks 'Go is not on the PATH. If it is on yours, sudo has another one: sudo env "PATH=$PATH" '"$make. If not: install Go $want, https://go.dev/doc/install"
		return
	fi
	have=$(GOTOOLCHAIN=local go version | sed 's/^go version go\([0-9]*\.[0-9]*\).*/\1/')
	if [ "$(number "$have")" -ge "$(number "$want")" ]; then
		fine "Go $have"
	elif [ "$(number "$have")" -ge 1021 ] && [ "$(cd / && go env GOTOOLCHAIN)" != local ]; then
		fine "Go $have, which fetches $want"
	else
		lacks "Go $have is too old, $want is needed: install it (https://go.dev/doc/install), then: sudo env \"PATH=/usr/local/go/bin:\$PATH\" $make"
	fi
}

check_tools() {
	if ! has "${CC:-gcc}"; then
		lacks "no C compiler, which the race detector needs: apt-get install gcc libc6-dev"
	elif ! echo '#include <stdlib.h>' | "${CC:-gcc}" -E - >/dev/null 2>&1; then
		lacks "no C library to compile against, which the race detector needs: apt-get install libc6-dev"
	else
		fine "a C compiler"
	fi
	if has git; then fine git; else lacks "no git: apt-get install git"; fi
	if has tmux; then fine tmux; else lacks "no tmux, the terminal of the tests of kubectl's plugin: apt-get install tmux"; fi
	if has npm && has node; then
		fine "node and npm"
	else
		lacks "no node or no npm, which the server with Azure's API is installed with that backups are tested with: apt-get install nodejs npm"
	fi
}

check_memory() {
	# GiB, see localcluster/README.md
	need=3
	! wants ci || need=5
	free=$(awk '/^MemAvailable:|^SwapFree:/ { sum += $2 } END { print int(sum / 1024) }' "$root/proc/meminfo")
	limit=$(cat "$root/sys/fs/cgroup/memory.max" 2>/dev/null || echo max)
	if [ "$limit" != max ]; then
		limit=$(echo "$limit" | awk '{ print int($1 / 1048576) }')
		[ "$limit" -ge "$free" ] || free=$limit
	fi
	if [ "$free" -lt $((need * 1024 - 200)) ]; then
		lacks "$free MiB of memory are free, ${need} GiB are needed: end other programs, or add swap: fallocate -l 4G /swapfile && chmod 600 /swapfile && mkswap /swapfile && swapon /swapfile"
	else
		fine "$free MiB of memory"
	fi
}

# space FOLDER GIB WHAT: is there that much room for what comes into the folder?
space() {
	folder=$1
	while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
	free=$(df -Pk "$folder" | awk 'NR == 2 { print int($4 / 1048576) }')
	if [ "$free" -lt "$2" ]; then
		lacks "$free GiB are free in $folder, $2 GiB are needed for $3: make room, or $4"
	else
		fine "$free GiB of room in $folder for $3"
	fi
}

check_disk() {
	space "${TMPDIR:-/tmp}" 2 "the cluster and its images" "use another file system: TMPDIR=FOLDER $make"
	has go || return 0
	cache=$(cd / && go env GOCACHE)
	need=4
	! wants test || need=8
	! wants ci || need=14
	# What was built before is there already.
	[ ! -e .cluster/bin/kubernetes ] || need=2
	space "$cache" "$need" "Go's build cache" "use another file system: GOCACHE=FOLDER $make"
}

check_namespaces() {
	if unshare --mount --pid --fork --net --uts --ipc true 2>/dev/null; then
		fine "namespaces"
	else
		no_node=yes
		lacks "namespaces of its own cannot be had here: $privileged"
		return 1 # what is tried in one would fail for the same reason
	fi
}

# overlay FOLDER HOW-ELSE: can containers have their file systems there?
overlay() {
	place=$(mktemp -d "$1/doctor-XXXXXX") || { lacks "cannot write to $1"; return; }
	mkdir "$place/lower" "$place/upper" "$place/work" "$place/merged"
	if unshare --mount mount -t overlay -o "lowerdir=$place/lower,upperdir=$place/upper,workdir=$place/work" overlay "$place/merged" 2>/dev/null; then
		fine "overlay file systems in $1"
	elif ! grep -qw overlay "$root/proc/filesystems" 2>/dev/null; then
		no_node=yes
		lacks "the kernel has no overlay file system, which containers need: $(modprobe overlay)"
	elif [ "$(stat -f -c %T "$1")" = overlayfs ]; then
		lacks "$1 is the container's own disk, an overlay, which containers cannot have their file systems on: docker run --volume NAME:/volume, and $2"
	else
		lacks "$1 is on a file system that containers cannot have theirs on ($(stat -f -c %T "$1")): $2 with a folder on another one"
	fi
	rm -rf "$place"
}

check_overlay() {
	! wants demo test ci || overlay "${TMPDIR:-/tmp}" "TMPDIR=/volume $make"
	! wants up || overlay "$PWD" "have the repository in /volume"
}

check_cgroups() {
	folder=$root/sys/fs/cgroup
	if [ -e "$folder/cgroup.controllers" ]; then
		have=$(cat "$folder/cgroup.controllers")
		where=$folder
	else
		have=$(awk -v d="$folder/" 'index($2, d) == 1 && $3 == "cgroup" { print $4 }' "$root/proc/mounts" | tr '\n,' '  ')
		where=$folder/memory
	fi
	off=''
	for controller in cpu cpuset memory pids; do
		case " $have " in *" $controller "*) ;; *) off="$off $controller" ;; esac
	done
	if [ -n "$off" ]; then
		lacks "the kernel's cgroup controllers$off are off: add cgroup_enable=NAME for each of them to the kernel's command line (GRUB_CMDLINE_LINUX in /etc/default/grub, update-grub) and reboot"
	elif ! mkdir "$where/localcluster-doctor" 2>/dev/null; then
		no_node=yes
		lacks "no folder can be made in $where: $privileged"
	else
		rmdir "$where/localcluster-doctor"
		fine "cgroup controllers"
	fi
}

check_network() {
	if has ip; then
		if unshare --net ip link add doctor0 type veth peer name doctor1 2>/dev/null; then
			fine "veth devices"
		else
			lacks "the kernel makes no veth devices: $(modprobe veth)"
		fi
		# A cluster of one node needs none.
		if ! wants ci; then
			:
		elif unshare --net ip link add doctor0 type bridge 2>/dev/null; then
			fine "bridge devices"
		else
			lacks "the kernel makes no bridge devices: $(modprobe bridge)"
		fi
	fi
	# Either kind of rules will do. A machine without these programs says it later.
	tried='' works=''
	for program in iptables iptables-legacy; do
		if has "$program"; then
			tried=yes
			! unshare --net "$program" -t nat -A POSTROUTING -j MASQUERADE 2>/dev/null || works=yes
		fi
	done
	if has nft; then
		tried=yes
		! unshare --net nft 'add table ip d; add chain ip d c { type nat hook postrouting priority 100 ; }; add rule ip d c masquerade' 2>/dev/null || works=yes
	fi
	if [ -n "$works" ]; then
		fine "network address translation"
	elif [ -n "$tried" ]; then
		lacks "the kernel has no network address translation: $(modprobe nft_compat nft_chain_nat xt_MASQUERADE)"
	fi
}

check_system
check_go
! wants ci || check_tools
check_packages
check_memory
check_disk
if [ "$(id -u)" = 0 ]; then
	fine root
	check_cgroups
	if has unshare && check_namespaces; then
		check_overlay
		check_network
	fi
else
	no_node=yes
	# shellcheck disable=SC2016
	lacks 'namespaces, mounts and network devices take root: sudo env "PATH=$PATH" '"$make"
fi
done_here
