#!/usr/bin/env bash
# Fails if generated files are not current. It generates them in a copy of the
# work tree, so that what is being edited here does not matter, nor does git.
set -euo pipefail
cd "$(dirname "$0")/.."

copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
mkdir "$copy/before"
cp -a Makefile go.mod go.sum api cmd docs hack internal operators "$copy/before"
cp -a "$copy/before" "$copy/after"
ln -s "$PWD/bin" "$PWD/tools" "$copy/after"
MAKEFLAGS='' make --no-print-directory -s -C "$copy/after" generate manifests
rm "$copy/after/bin" "$copy/after/tools"
if ! diff -r -u "$copy/before" "$copy/after"; then
	echo "generated files are not current: run make generate manifests" >&2
	exit 1
fi
