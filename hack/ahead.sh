#!/usr/bin/env bash
# Runs a command, and prepares meanwhile what it needs later: the Go modules of all
# programs are fetched side by side, and then compiled into Go's cache with the time
# that the processors have left over. The command does not rely on it. It builds all
# that it needs by itself, from what is there by then, and says how far it is.
#
# Usage: PROGRAMS="PACKAGE..." hack/ahead.sh demo|test COMMAND [ARG...]
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=$1
shift

# fetch FOLDER FLAG-OR-PACKAGE...: go list fetches the modules that it finds packages in.
fetch() { (cd "$1" && go list -deps "${@:2}") & }

# shellcheck disable=SC2086 # $PROGRAMS is a list
ahead() {
	fetch localcluster . ./components/...
	if [[ $purpose == demo ]]; then fetch . -test $PROGRAMS ./operators/at; else fetch . -test -tags apiserver,e2e ./...; fi
	wait
	# What follows the cluster's own programs, in the order in which it is needed.
	go build -o /dev/null $PROGRAMS
	until [[ -x bin/localcluster ]]; do sleep 1; done
	bin/localcluster etcd v3.6.16
}

set -m # a process group of its own, so that all of it can be ended
CGO_ENABLED=0 nice -n 19 bash -c "$(declare -p purpose); $(declare -f fetch ahead); ahead" >/dev/null 2>&1 &
trap 'kill -- "-$!" 2>/dev/null || true' EXIT
"$@"
