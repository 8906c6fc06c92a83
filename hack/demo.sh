#!/usr/bin/env bash
# Shows the operators at work on the local cluster that $LOCALCLUSTER_DIR and
# $KUBECONFIG name. Exits non-zero if any of it does not work.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
fail() { printf 'demo: %s\n' "$*" >&2; exit 1; }

make --no-print-directory -s build # while the cluster's own pods start
say "Deploying the operators"
hack/deploy.sh all
kubectl get pods --all-namespaces

# Etcd's comes last: hack/ahead.sh is still compiling its image.
shopt -s extglob
for demo in operators/{!(etcd),etcd}/config/samples/demo.sh; do
	# shellcheck source=/dev/null
	source "$demo"
done
say "All of it worked."
