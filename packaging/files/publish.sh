#!/bin/sh
# Makes a package archive (p5p) of sledctl on OmniOS or Helios, from what lies next to this
# script. It needs no privileges, and installs nothing.
#
#     ./publish.sh omnios        # or helios
#     pfexec pkg install -g "$PWD/sledctl-omnios.p5p" ooce/system/sledctl
set -eu
cd "$(dirname "$0")"
case $#,${1:-} in
1,omnios | 1,helios) kind=$1 ;;
*)
	echo "usage: publish.sh omnios|helios" >&2
	exit 2
	;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
repository=$work/repository # which pkgrepo makes: of a directory that is there its page says nothing
pkgrepo create "$repository"
pkgrepo set -s "$repository" publisher/prefix=sledctl
pkgsend publish -s "$repository" -d proto "sledctl-$kind.p5m"
rm -f "sledctl-$kind.p5p"
pkgrecv -s "$repository" -a -d "sledctl-$kind.p5p" ooce/system/sledctl
