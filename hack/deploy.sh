#!/usr/bin/env bash
# Deploys operators into the local cluster that $LOCALCLUSTER_DIR and
# $KUBECONFIG name, and waits until they are ready.
#
# Usage: hack/deploy.sh all|OPERATOR
set -euo pipefail
cd "$(dirname "$0")/.."

operator=${1:-all}
if [[ $operator == all ]]; then
	name=fairlead namespace=fairlead-system config=operators/config/default
else
	name=$operator-operator namespace=$operator-operator-system config=operators/$operator/config/default
fi

deployment=deployment/$name-controller-manager

bin/localcluster load --dir "$LOCALCLUSTER_DIR" fairlead:dev bin/fairlead
was_there=$(kubectl -n "$namespace" get --ignore-not-found -o name "$deployment")
kubectl apply --server-side -k "$config" >/dev/null
# The tag stays the same when the image changes, so nothing else restarts it.
[[ -z $was_there ]] || kubectl -n "$namespace" rollout restart "$deployment" >/dev/null
kubectl -n "$namespace" rollout status --timeout 10m "$deployment"
