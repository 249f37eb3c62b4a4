package tools

import (
	"testing"

	"github.com/sledctl/sledctl/sim/world"
)

func TestZpool(t *testing.T) {
	// usr/src/cmd/zpool/zpool_main.c; zpool(8).
	session(t, zfsTx(t), `$ zpool list -Hp -o name,size,allocated,free,health
rpool→240057409536→294912→240057114624→ONLINE
tank→3200631791616→98304→3200631693312→ONLINE
$ zpool list -H -o name nope tank
! cannot open 'nope': no such pool
tank
= 1
$ zpool list -Hp -o health,failmode tank
ONLINE→wait
$ zpool set failmode=continue tank
$ zpool list -H -o failmode tank
continue
$ zpool set failmode=wait nope
! cannot open 'nope': no such pool
= 1
$ zfs create tank/x
$ zpool create -m /t2 tank c12t0d0
! cannot create 'tank': pool already exists
= 1
$ zpool create new c11t0d0
! invalid vdev specification
! use '-f' to override the following errors:
! /dev/dsk/c11t0d0s0 is part of active ZFS pool tank. Please see zpool(8).
= 1
$ zpool create -o ashift=12 new c12t0d0
$ zfs get -Ho value mountpoint,mounted new
/new
yes
$ zpool status new
  pool: new
 state: ONLINE
  scan: none requested
config:

	NAME        STATE     READ WRITE CKSUM
	new         ONLINE       0     0     0
	  c12t0d0   ONLINE       0     0     0

errors: No known data errors
$ zpool status -x
all pools are healthy
$ zpool export new
$ zfs list -H new
! cannot open 'new': dataset does not exist
= 1
$ zpool import
   pool: new
     id: GUID
  state: ONLINE
 action: The pool can be imported using its name or numeric identifier.
 config:

	new         ONLINE
	  c12t0d0   ONLINE
$ zpool import -f new
$ zpool import -f new
! cannot import 'new': a pool with that name is already created/imported,
! and no additional pools with that name were found
= 1
$ zpool import nope
! cannot import 'nope': no such pool available
= 1
$ zpool destroy new
$ zpool destroy new
! cannot open 'new': no such pool
= 1
$ zpool export rpool
! cannot unmount '/': Device busy
= 1
`)
}

func TestAnExportedPoolThatIsBusyStays(t *testing.T) {
	// zpool_disable_datasets in libzfs_mount.c.
	tx := zfsTx(t)
	session(t, tx, "$ zfs create tank/z\n")
	tx.State.Zones = []*world.Zone{{Name: "z", Kernel: &world.Kernel{State: "running", Config: world.Config{Zonepath: "/tank/z"}}}}
	session(t, tx, `$ zpool export tank
! cannot unmount '/tank/z': Device busy
= 1
$ zpool destroy tank
! cannot unmount '/tank/z': Device busy
! could not destroy 'tank': could not unmount datasets
= 1
$ zfs list -H -o name,mounted tank/z
tank/z→yes
`)
}
