#!/bin/sh
# Makes crds.yaml and zz_generated.deepcopy.go from the types. Runs in fleet/.
set -eu
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
gen="$out/controller-gen"
(cd tools && "${GO:-go}" build -o "$gen" sigs.k8s.io/controller-tools/cmd/controller-gen)
"$gen" object paths=./api
"$gen" crd paths=./api output:crd:dir="$out/crds"
cat "$out"/crds/*.yaml | sed 1d >api/crds.yaml # the first file begins with --- as the others do
