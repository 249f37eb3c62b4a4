#!/bin/sh
# The story of a sled, told by sledctl itself on a simulated one: make demo.
# usage: demo.sh PATH-TO-SLEDCTL
set -eu

sledctl=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
dir=$(mktemp -d "${TMPDIR:-/tmp}/sledctl-demo.XXXXXX")
trap 'rm -rf "$dir"' EXIT INT TERM
SLEDCTL_HOST=sim:$dir/sled
export SLEDCTL_HOST
unset SLEDCTL_CONFIG || true

bold='' plain=''
if [ -t 1 ] && [ -z "${NO_COLOR:-}" ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); fi
say() { printf '\n%s# %s%s\n' "$bold" "$*" "$plain"; }
run() { printf '%s$ sledctl %s%s\n' "$bold" "$*" "$plain"; "$sledctl" "$@"; }

say 'A sled that nobody has touched: two M.2 disks, two U.2, two links.'
say 'Its commands take as long as they were measured to take on a real one in 2021.'
run sim init --u2 2 --latency helios2021

say 'Prepare it: datasets, the ledger, the network, a base zone on each pool.'
run bootstrap

"$sledctl" sim show -o json >"$dir/prepared"

say 'What would it take to bring up a VM?'
run instance ensure web1 --cpus 4 --memory 8G --nic over=net0 --dry-run

say 'Two instances, side by side.'
"$sledctl" instance ensure db1 --memory 4G >/dev/null 2>&1 &
run instance ensure web1 --cpus 4 --memory 8G --nic over=net0
wait
run instance list -o table

say 'Asked again, there is nothing to do.'
run instance ensure web1

say 'Where the time went.'
run trace --slowest 5 -o table

say 'The sled loses power.'
run sim reboot
run instance list -o table

say 'What the earlier boot left, and why reap removes or keeps each object.'
run reap --dry-run -o table

say 'Prepared again: the network that a reboot removes, and the reap.'
run bootstrap
run reap --dry-run -o table

say 'The same instances again: same addresses, same MACs.'
run instance ensure web1
run instance ensure db1
run instance list -o table

say 'Gone.'
run instance delete web1 db1
run reap --dry-run -o table

say 'The sled is as it was when it was prepared.'
"$sledctl" sim show -o json >"$dir/after"
# A boot leaves the root of a base zone unmounted; a clone needs no more.
for state in prepared after; do
	sed -e '/"mounted": /d' -e 's/,$//' "$dir/$state" >"$dir/$state.plain"
done
if cmp -s "$dir/prepared.plain" "$dir/after.plain"; then
	echo 'not one zone, link, dataset, address or service more or less'
else
	diff "$dir/prepared.plain" "$dir/after.plain" || true
	exit 1
fi
