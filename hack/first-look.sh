#!/usr/bin/env bash
# Something to look at before there is a cluster: one history of an At, told by the
# simulation that its tests play. It needs only some of the packages that Kubernetes
# and the operators are built of, so it takes no time from these.
set -euo pipefail
cd "$(dirname "$0")/.."

imports=$(go list -f '{{range .TestImports}}{{.}} {{end}}' ./operators/at)
# shellcheck disable=SC2086 # $imports is a list
bin/localcluster build --title "building the At operator, to show it on a simulated API server first" -o /dev/null -- $imports
go test -c -o bin/at-simulation ./operators/at
printf '\n\033[1mAt, simulated: the operator is killed right after it claims the run, the worst moment\033[0m\n'
# The third write is the claim, and the fourth fate of a write is to be the operator's last.
(cd operators/at && REPLAY='succeeds fate3=4' ../../bin/at-simulation -test.v -test.run '^TestSimulation$') |
	sed -n 's/^ *simulation\.go:[0-9]*: //p' | { grep -v ': changes ' || true; }
printf 'It ran once. make unit plays 25,000 such histories; what follows is a real Kubernetes.\n\n'
