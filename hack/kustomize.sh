#!/usr/bin/env bash
# Prints what a kustomize folder makes with another image: of the manager, and in
# the variable by which it knows its own.
#
# Usage: hack/kustomize.sh FOLDER IMAGE
set -euo pipefail
cd "$(dirname "$0")/.."

image=$2
[[ $image == *:* ]] || image+=:latest
mkdir -p bin
overlay=$(mktemp -d bin/overlay-XXXXXX) # kustomize takes no absolute paths
trap 'rm -rf "$overlay"' EXIT
cat >"$overlay/kustomization.yaml" <<EOF
resources: [../../$1]
transformers:
  - |-
    apiVersion: builtin
    kind: ImageTagTransformer
    metadata: {name: image}
    imageTag: {name: fairlead, newName: "${image%:*}", newTag: "${image##*:}"}
    fieldSpecs:
      - {kind: Deployment, path: "spec/template/spec/containers[]/image"}
      - {kind: Deployment, path: "spec/template/spec/containers[]/env[]/value"}
EOF
"${KUBECTL:-kubectl}" kustomize "$overlay"
