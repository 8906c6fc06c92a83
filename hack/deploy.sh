#!/usr/bin/env bash
# Deploys operators into the cluster of $KUBECONFIG, and waits until they are
# ready. If $LOCALCLUSTER_DIR names the local cluster, their image is loaded into it.
# Any other cluster gets it by $LOAD, a command that takes an archive as its
# last argument, or pulls it as $IMG.
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
image=${IMG:-fairlead:dev}

if [[ -n ${LOCALCLUSTER_DIR:-} ]]; then
	image=fairlead:dev
	bin/localcluster load --dir "$LOCALCLUSTER_DIR" "$image" bin/fairlead bin/fairlead-at-start bin/fairlead-etcd-agent
elif [[ -n ${LOAD:-} ]]; then
	archives=$(mktemp -d)
	trap 'rm -rf "$archives"' EXIT
	bin/dist -version 0.0.0 -out "$archives" -image "$image" -platforms "linux/$(go env GOARCH)" image
	$LOAD "$archives"/images/*.tar
fi
was_there=$(kubectl -n "$namespace" get --ignore-not-found -o name "$deployment")
hack/kustomize.sh "$config" "$image" | kubectl apply --server-side -f - >/dev/null
# The tag stays the same when the image changes, so nothing else restarts it.
[[ -z $was_there ]] || kubectl -n "$namespace" rollout restart "$deployment" >/dev/null
kubectl -n "$namespace" rollout status --timeout 10m "$deployment"
