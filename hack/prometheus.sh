#!/usr/bin/env bash
# Builds promtool, Prometheus and Alertmanager, which the tests of the alerts need, into bin/.
#
# Prometheus has no clients of clouds, to find targets by. Alertmanager embeds a web interface that its module does not
# have: it is built from a copy, with an empty page instead.
set -euo pipefail
cd "$(dirname "$0")/.."

build() { go build -C "$1" -tags remove_all_sd -ldflags '-s -w' -o "$PWD/bin/" "${@:2}"; }
build tools/prometheus tool

alertmanager=github.com/prometheus/alertmanager
version=$(go list -C tools/alertmanager -m -f '{{.Version}}' $alertmanager)
[[ "$(go version -m bin/alertmanager 2>&1)" != *"$alertmanager	$version"* ]] || exit 0
(cd tools/alertmanager && go mod download $alertmanager) # before that it is in no folder
copy=$(mktemp -d)
trap 'chmod -R u+w "$copy" && rm -rf "$copy"' EXIT
cp -r "$(go list -C tools/alertmanager -m -f '{{.Dir}}' $alertmanager)" "$copy/alertmanager"
chmod -R u+w "$copy"
mkdir "$copy/alertmanager/ui/app/dist"
echo 'Built without its interface.' >"$copy/alertmanager/ui/app/dist/index.html"
cp tools/alertmanager/go.{mod,sum} "$copy/"
go mod edit -replace "$alertmanager=$copy/alertmanager" "$copy/go.mod"
build tools/alertmanager -modfile "$copy/go.mod" $alertmanager/cmd/alertmanager
