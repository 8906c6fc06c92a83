#!/usr/bin/env bash
# Deploys operators, each by itself and under its admission policy, into the
# cluster of $KUBECONFIG, and runs their end-to-end tests.
#
# If $LOCALCLUSTER_DIR names the local cluster, all tests run. On any other
# cluster those that need the local one are skipped and counted, and what was
# deployed is removed at the end. That cluster gets the image by $LOAD, a
# command that takes an archive as its last argument ("kind load image-archive"),
# or pulls it as $IMG.
#
# A test that needs the cluster to itself is called TestSerial..., and one that judges time, or
# that no request is lost, TestAlone...: they run one at a time, after the others. RUN=PATTERN runs
# only what it matches, as well one at a time if that is ^TestSerial... or ^TestAlone...;
# SKIP=PATTERN leaves out what it matches.
#
# Usage: [RUN=PATTERN | SKIP=PATTERN] hack/e2e.sh all|OPERATOR
set -euo pipefail
cd "$(dirname "$0")/.."

operators=${1:-all}
[[ $operators != all ]] || operators=$(printf '%s\n' operators/*/operator.go | cut -d/ -f2)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# shellcheck disable=SC2317 # the trap calls it
undeploy() {
	for operator in $operators; do
		kubectl delete --ignore-not-found -k "operators/$operator/config/policy" >/dev/null || true
		kubectl delete --ignore-not-found -k "operators/$operator/config/default" >/dev/null || true
	done
	rm -f "$log"
}

if [[ -z ${LOCALCLUSTER_DIR:-} ]]; then
	there=$(kubectl kustomize operators/config/crd | kubectl get --ignore-not-found -o name -f -)
	if [[ -n $there ]]; then
		printf 'e2e: this cluster has CRDs that these tests would remove, with all their objects:\n%s\n' "$there" >&2
		exit 1
	fi
	trap undeploy EXIT
fi
for operator in $operators; do
	kubectl apply -k "operators/$operator/config/policy" >/dev/null
	hack/deploy.sh "$operator"
done

# What takes very long has a target of its own.
serial='^Test(Serial|Alone)' soak='^TestSoak$'
packages=
# What takes longest begins first: etcd, then moving in.
[[ $operators != *etcd* ]] || packages+=" ./test/e2e/etcd ./test/e2e/moving"
packages+=$(for operator in ${operators/etcd/}; do printf ' ./test/e2e/%s' "$operator"; done)
# The alerts and the network are about all of them.
[[ ${1:-all} != all ]] || packages+=" ./test/e2e/alerts ./test/e2e/network"
# run FLAG...: they mostly wait, so there are more packages at a time than processors. Of those that run in parallel,
# the lines with CONT and NAME say which one printed what follows.
# shellcheck disable=SC2086 # $packages is a list
run() {
	go test -tags e2e -count 1 -timeout 60m -v -p 3 -parallel 2 "$@" $packages 2>&1 | tee -a "$log" |
		grep -vE '^=== (RUN|PAUSE) '
}
failed=0
case ${RUN:-} in
^TestSerial* | ^TestAlone*) run -p 1 -parallel 1 -run "$RUN" || failed=1 ;;
?*) run -run "$RUN" || failed=1 ;;
*)
	run -skip "$serial|$soak${SKIP:+|$SKIP}" || failed=1
	run -p 1 -parallel 1 -run "$serial" ${SKIP:+-skip "$SKIP"} || failed=1
	;;
esac

if [[ -z ${LOCALCLUSTER_DIR:-} ]]; then
	printf '\n%d tests were skipped, because they need the local cluster:\n' "$(grep -c 'needs the local cluster: ' "$log")"
	{ grep -B1 'needs the local cluster: ' "$log" || true; } | sed -nE 's/^--- SKIP: (\S+).*/  \1/p; s/.*needs the local cluster: /      /p'
fi
exit $failed
