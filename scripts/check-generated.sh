#!/usr/bin/env bash
# Fails when src/gen is not what buf generates from proto/ and proto-internal/ now.
set -euo pipefail
cd "$(dirname "$0")/.."
PATH="$PWD/node_modules/.bin:$PATH"
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
node_modules/.bin/buf generate -o "$fresh"
node_modules/.bin/buf generate --template buf.gen.internal.yaml -o "$fresh"
if ! diff -r "$fresh/src/gen" src/gen; then
  echo 'src/gen is not what proto/ and proto-internal/ generate: run make gen and commit the result' >&2
  exit 1
fi
echo 'generated code: no drift'
