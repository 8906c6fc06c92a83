#!/usr/bin/env bash
# Prints where the known vulnerabilities of Go modules are, for govulncheck -db: $VULNDB, or a module of the Go project's
# that has them, in its newest version. So it is reached wherever modules are.
set -euo pipefail

[[ -z ${VULNDB:-} ]] || { echo "$VULNDB"; exit; }
about=$(go mod download -json golang.org/x/vulndb@latest)
folder=$(sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$about")
echo "known vulnerabilities are those of $(basename "$folder")" >&2
echo "file://$folder/data/osv"
