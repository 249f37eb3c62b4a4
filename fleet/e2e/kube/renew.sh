#!/bin/sh
# Takes the versions of Kubernetes and etcd that it is given into go.mod. Kubernetes' own go.mod
# replaces its staging modules by directories: here each is replaced by the module that is
# published from it, of the same version with v0 for v1. The list is the end of the file.
#
#	sh renew.sh v1.37.2 v3.7.3
set -eu
cd "$(dirname "$0")"
kubernetes=${1:?want the version of Kubernetes} etcd=${2:?want the version of etcd}
go=${GO:-go}
theirs=$("$go" mod download -json "k8s.io/kubernetes@$kubernetes" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
kept=$(sed '/^replace (/,$d' go.mod)
{
	printf '%s\n\nreplace (\n' "$kept"
	sed -n "s#^\t\(k8s.io/[a-z-]*\) => \./staging/.*#\t\1 => \1 v0${kubernetes#v1}#p" "$theirs"
	echo ')'
} >go.mod
"$go" mod edit -require "k8s.io/kubernetes@$kubernetes" -require "go.etcd.io/etcd/server/v3@$etcd"
"$go" mod tidy
