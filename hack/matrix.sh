#!/usr/bin/env bash
# Runs the tests against the API server, but for the sweep, and the walkthroughs
# on other releases of Kubernetes.
#
# Usage: hack/matrix.sh RELEASE...
set -euo pipefail
cd "$(dirname "$0")/.."

etcd=$(bin/localcluster etcd)
for release in "$@"; do
	echo "== Kubernetes $release"
	assets=$(bin/localcluster assets --kubernetes "$release")
	KUBEBUILDER_ASSETS=$assets ETCD_ASSETS=$etcd STORAGE_ASSETS=$PWD/bin GOGC=400 go test -tags apiserver -timeout 60m -skip '^TestSweep' ./internal/... ./operators/...
	RUN=Walkthrough bin/localcluster run --kubernetes "$release" --images all -- hack/e2e.sh all
done
