#!/bin/sh
# Installs sledctl on a sled where no package of IPS does: on OmniOS and Helios, on SmartOS
# below /opt/custom, and where the root is a RAM disk on a dataset of a pool. It writes
# only what docs/install.md names, keeps the version before for a rollback, and may be
# killed at any instant: run it again.
set -u
umask 022

usage() {
	cat >&2 <<'END'
usage: install.sh install [--pool POOL]   install this version, or upgrade to it
       install.sh upgrade                 upgrade to this version
       install.sh rollback                return to the version before
       install.sh restore                 put back what a RAM disk has forgotten
       install.sh image DIR               write what the image of a RAM disk needs, below DIR
       install.sh enable|disable SERVICE  instances or agent, also at the next boot
       install.sh status                  print what is installed
       install.sh uninstall [--purge]     remove it; --purge: the configuration and the ledger too
END
	exit 2
}

fail() { # fail EXIT MESSAGE [HINT]
	echo "error: $2" >&2
	[ $# -lt 3 ] || echo "hint: $3" >&2
	exit "$1"
}

say() { echo "$*" >&2; }

# The directory that stands for the sled's /: as sledctl's own host.root.
root=${SLEDCTL_HOST_ROOT:-}
root=${root%/}

ramdisk() { zpool status rpool 2>/dev/null | grep ramdisk >/dev/null; }

# layout says where all of it lies. store is what survives a reboot.
layout() {
	store=/opt/sledctl state=/var/opt/ooce/sledctl manifests=/var/svc/manifest/site/sledctl
	config=/etc/sledctl/config.toml rights=yes
	if grep SmartOS "$root/etc/release" >/dev/null 2>&1; then
		kind=smartos store=/opt/custom/lib/sledctl state=/opt/custom/sledctl manifests=/opt/custom/smf
		config=$state/config.toml rights=
	elif ramdisk; then
		kind=ramdisk state=
	else
		kind=pool
	fi
	s=$root$store
}

source=$(cd "$(dirname "$0")" && pwd) || exit 1
installed() { cat "$s/current" 2>/dev/null; }
before() { cat "$s/previous" 2>/dev/null; }

# keep writes standard input to a file by rename: a reader sees the old or the new one.
keep() { # keep MODE FILE
	cat >"$2.new" && chmod "$1" "$2.new" && mv -f "$2.new" "$2" || fail 1 "cannot write $2"
}

service() { echo "svc:/ooce/sledctl/$1:default"; }
state_of() { svcs -H -o state "$(service "$1")" 2>/dev/null | tr -d ' '; }

# await_stopped waits for a service's stop method, which may take ten minutes.
await_stopped() {
	tries=0
	while :; do
		case $(state_of "$1") in disabled | maintenance | '') return ;; esac
		tries=$((tries + 1))
		[ $tries -le 660 ] || fail 7 "service $(service "$1") does not stop" "to see why, run: svcs -x $(service "$1")"
		sleep 1
	done
}

# unpack puts this version into the store, complete or not at all.
unpack() {
	version=$(cat "$source/VERSION") || fail 1 "$source holds no VERSION" "run install.sh of an unpacked tarball"
	to=$s/versions/$version
	[ -d "$to" ] && return
	rm -rf "$to.new"
	mkdir -p "$to.new" || fail 1 "cannot create $to"
	for part in VERSION LICENSE sbom.cdx.json install.sh bin etc smf rights man completion; do
		[ ! -e "$source/$part" ] || cp -R "$source/$part" "$to.new/" || fail 1 "cannot copy $part to $to"
	done
	mv "$to.new" "$to" || fail 1 "cannot create $to"
}

# link makes a symbolic link by rename. The target is relative: the root may be elsewhere.
link() { # link TARGET NAME
	rm -f "$2.new" && ln -s "$1" "$2.new" && mv -f "$2.new" "$2" || fail 1 "cannot create $2"
}

# place makes everything outside the store from the version that is current. The names
# are in a list, by which uninstall finds them: each before its file, and those that an
# earlier run has placed, also one that was killed.
place() {
	v=$(installed)
	from=$s/versions/$v
	mkdir -p "$s/bin" "$root$manifests" || fail 1 "cannot create directories"
	[ ! -f "$s/placed" ] || cat "$s/placed" >>"$s/placing"
	put() { # put MODE FILE NAME
		echo "$3" >>"$s/placing"
		mkdir -p "$(dirname "$root$3")" && keep "$1" "$root$3" <"$2" || fail 1 "cannot write $3"
	}
	link "../versions/$v/bin/sledctl" "$s/bin/sledctl"
	put 555 "$from/install.sh" "$store/install.sh"
	rm -f "$s/man" && ln -s "versions/$v/man" "$s/man"
	for x in sledctl sledctl-agent; do put 444 "$from/smf/$x.xml" "$manifests/$x.xml"; done
	if [ "$kind" = smartos ]; then
		put 444 "$from/smf/sledctl-restore.xml" "$manifests/sledctl-restore.xml"
		echo /opt/custom/bin/sledctl >>"$s/placing"
		mkdir -p "$root/opt/custom/bin"
		link ../lib/sledctl/bin/sledctl "$root/opt/custom/bin/sledctl"
	fi
	if [ -n "$rights" ]; then
		for x in exec_attr prof_attr; do put 444 "$from/rights/$x" "/etc/security/$x.d/sledctl"; done
	fi
	while read -r dir name; do
		[ ! -d "$root$dir" ] || put 444 "$from/completion/$name" "$dir/$name"
	done <<'END'
/usr/share/bash-completion/completions sledctl
/usr/share/fish/vendor_completions.d sledctl.fish
/usr/share/zsh/site-functions _sledctl
END
	sort -u "$s/placing" | keep 444 "$s/placed" || exit 1
	rm -f "$s/placing"
	configure
	[ -z "$state" ] || [ -d "$root$state" ] || { mkdir -p "$root${state%/*}" && mkdir -m 700 "$root$state"; }
	[ -z "$rights" ] || svcadm restart svc:/system/rbac:default 2>/dev/null || :
	for x in sledctl sledctl-agent; do
		svccfg import "$manifests/$x.xml" || fail 1 "SMF did not import $manifests/$x.xml"
	done
	while read -r x; do
		svcadm enable "$(service "$x")" || fail 1 "cannot enable $(service "$x")"
	done <"$s/services"
}

# configure leaves a configuration that is there. That of a RAM disk lies in the store.
configure() {
	mkdir -p "$(dirname "$root$config")"
	if [ "$kind" = ramdisk ]; then
		[ -f "$s/config.toml" ] || keep 600 "$s/config.toml" <"$from/etc/config.toml"
		[ -e "$root$config" ] || link ../../opt/sledctl/config.toml "$root$config"
	else
		[ -e "$root$config" ] || keep 600 "$root$config" <"$from/etc/config.toml"
	fi
}

# on_pool makes the store a dataset, where the root forgets.
on_pool() {
	[ "$kind" = ramdisk ] || fail 2 "--pool is for a root on a RAM disk; this one keeps what is written" "leave out --pool"
	[ -f "$s/pool" ] && return
	zfs list "$pool/sledctl" >/dev/null 2>&1 || zfs create -o "mountpoint=$store" "$pool/sledctl" || fail 1 "cannot create dataset $pool/sledctl"
	echo "$pool" | keep 444 "$s/pool" || exit 1
}

# dataset is the name of the store's. An install that was killed may not have written the
# pool down: then it is the one that is mounted there.
dataset() {
	if [ -f "$s/pool" ]; then
		echo "$(cat "$s/pool")/sledctl"
	elif [ "$kind" = ramdisk ]; then
		zfs list -H -o name,mountpoint | while read -r name at; do
			case $name,$at in */sledctl,"$store") echo "$name" ;; esac
		done
	fi
}

# switch makes a version the current one. An agent is started again; the VMs, and the
# service that stops them when it is stopped, are left alone. What it does is written down
# first: when it is killed, settle knows both versions.
switch() { # switch TO FROM
	echo "$verb $1 $2" | keep 444 "$s/switching" || exit 1
	settle
	[ -f "$s/services" ] || keep 444 "$s/services" </dev/null
	place
	[ "$(state_of agent)" != online ] || svcadm restart "$(service agent)"
	for kept in "$s"/versions/*; do
		case ${kept##*/} in "$1" | "$(before)") ;; *) rm -rf "$kept" ;; esac
	done
	rm -f "$s/switching"
}

# settle writes which version is current and which was before, as a switch that has begun
# means it.
settle() {
	begun='' to='' from=''
	[ -f "$s/switching" ] || return 0
	read -r begun to from <"$s/switching"
	[ -z "$from" ] || echo "$from" | keep 444 "$s/previous" || exit 1
	echo "$to" | keep 444 "$s/current" || exit 1
}

install() {
	[ -z "$pool" ] || on_pool
	if [ "$kind" = ramdisk ] && [ ! -f "$s/pool" ]; then
		fail 8 "the root is a RAM disk: what is installed on it is gone at the next boot" "give a pool to install it on: install.sh install --pool POOL"
	fi
	settle
	old=$(installed)
	unpack
	if [ "$old" = "$version" ]; then
		switch "$version" ""
		say "sledctl $version is installed"
	else
		switch "$version" "$old"
		say "installed sledctl $version${old:+ in place of $old, which rollback returns to}"
	fi
	[ "$kind" = smartos ] && path=/opt/custom/bin || path=$store/bin
	say "the program is $path/sledctl; its manual pages are in $store/man"
}

needs_installed() {
	[ -n "$(installed)" ] || fail 4 "sledctl is not installed in $store" "to install it, run: install.sh install"
}

# rollback returns to the version before, unless that cannot read a ledger which this
# version reads.
rollback() {
	settle
	if [ "$begun" = rollback ]; then # it was killed
		switch "$to" "$from"
		say "returned to sledctl $to; rollback again returns to $from"
		return
	fi
	new=$(installed) old=$(before)
	[ -n "$old" ] && [ -d "$s/versions/$old" ] || fail 4 "no version before $new is kept"
	if "$s/versions/$new/bin/sledctl" ledger show >/dev/null 2>&1; then
		"$s/versions/$old/bin/sledctl" ledger show >/dev/null ||
			fail 9 "sledctl $old cannot read the ledger of this sled; $new stays"
	fi
	switch "$old" "$new"
	say "returned to sledctl $old; rollback again returns to $new"
}

# image writes the two files by which a system image finds the store at each boot.
image() {
	[ -d "$1" ] || fail 4 "no directory $1"
	[ -f "$s/pool" ] || fail 8 "sledctl is on no pool here" "to install it, run: install.sh install --pool POOL"
	from=$s/versions/$(installed)
	mkdir -p "$1/lib/svc/method" "$1/lib/svc/manifest/site" || fail 1 "cannot write to $1"
	guid=$(zpool list -H -o guid "$(cat "$s/pool")") || fail 1 "cannot tell the number of the pool"
	sed "s/@GUID@/$guid/" "$from/smf/sledctl-restore" | keep 555 "$1/lib/svc/method/sledctl-restore" || exit 1
	sed 's,/opt/custom/lib/sledctl/install.sh restore,/lib/svc/method/sledctl-restore,' "$from/smf/sledctl-restore.xml" | keep 444 "$1/lib/svc/manifest/site/sledctl-restore.xml" || exit 1
	say "wrote lib/svc/method/sledctl-restore and lib/svc/manifest/site/sledctl-restore.xml below $1"
}

switch_service() {
	case $2 in instances | agent) ;; *) usage ;; esac
	{ grep -v "^$2\$" "$s/services"; [ "$1" = disable ] || echo "$2"; } | keep 444 "$s/services" || exit 1
	svcadm "$1" "$(service "$2")" || fail 1 "cannot $1 $(service "$2")"
}

status() {
	echo "current: $(installed)"
	echo "previous: $(before)"
	echo "layout: $kind"
	echo "store: $store"
	for x in instances agent; do echo "$x: $(state_of $x)"; done
}

uninstall() {
	left=$("$s/bin/sledctl" instance list -H -o name 2>/dev/null) || :
	if [ -n "$left" ]; then
		say "$left"
		fail 8 "the sled has these instances" "to remove them, run: sledctl instance delete NAME"
	fi
	case $source in "$s"*) # what runs lies on what is removed
		script=$(cat "$source/install.sh") && cd / && exec sh -c "$script" install.sh uninstall ${purge:+--purge} ;;
	esac
	for x in agent instances; do
		[ -z "$(state_of $x)" ] || svcadm disable "$(service $x)"
		await_stopped $x
	done
	v=$(installed)
	own=$root$config
	[ "$kind" != ramdisk ] || { own=$s/config.toml && [ ! -h "$root$config" ] || rm -f "$root$config"; }
	rm -f "$root$config.new" "$own.new" # an install was killed
	if [ -n "$purge" ] || cmp -s "$own" "$s/versions/$v/etc/config.toml"; then
		rm -f "$own"
	elif [ "$kind" = ramdisk ] && [ -f "$own" ] && [ ! -e "$root$config" ]; then
		keep 600 "$root$config" <"$own"
	fi
	for list in "$s/placed" "$s/placing"; do # the second one: an install was killed
		[ ! -f "$list" ] || while read -r name; do rm -f "$root$name" "$root$name.new"; done <"$list"
	done
	[ -z "$purge" ] || [ -z "$state" ] || rm -rf "${root:?}$state"
	svcadm restart svc:/system/manifest-import:default || :
	name=$(dataset)
	[ -z "$name" ] || zfs destroy "$name" || fail 3 "dataset $name is still here" "run it again"
	rm -rf "$s"
	tidy
	say "removed sledctl${v:+ $v}"
	[ ! -e "$root$config" ] || say "kept $config, which was changed"
	[ -z "$state" ] || [ ! -e "$root$state" ] || say "kept $state, which holds the ledger"
}

# tidy removes what is left where sledctl is not: directories, if nothing lies in them.
tidy() {
	rm -rf "$root/var/run/sledctl"
	for dir in "$state" /var/opt/ooce "${config%/*}" "$manifests" /opt/custom/bin /opt/custom/lib /opt/custom; do
		[ -z "$dir" ] || rmdir "$root$dir" 2>/dev/null || :
	done
}

[ $# -ge 1 ] || usage
verb=$1 pool='' purge=''
shift
layout
case $verb in
install | upgrade)
	case $# in
	0) ;;
	2) [ "$1" = --pool ] && [ "$verb" = install ] || usage; pool=$2 ;;
	*) usage ;;
	esac
	[ "$verb" = install ] || needs_installed
	install ;;
rollback) [ $# -eq 0 ] || usage; needs_installed; rollback ;;
restore) [ $# -eq 0 ] || usage; needs_installed; place ;;
image) [ $# -eq 1 ] || usage; needs_installed; image "$1" ;;
enable | disable) [ $# -eq 1 ] || usage; needs_installed; switch_service "$verb" "$1" ;;
status) [ $# -eq 0 ] || usage; status ;;
uninstall)
	case $# in 0) ;; 1) [ "$1" = --purge ] || usage; purge=yes ;; *) usage ;; esac
	if [ ! -d "$s" ]; then tidy; say "sledctl is not installed"; exit 0; fi
	uninstall ;;
*) usage ;;
esac
