package storage

import (
	"fmt"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// fstyp(8): usr/src/cmd/fstyp/fstyp.c and usr/src/lib/libfstyp, with the module
// for ZFS, usr/src/cmd/fs.d/zfs/fstyp/fstyp.c; no other file system is known
// here. A device that can be opened but not read is one without a label
// (zpool_read_label in usr/src/lib/libzutil/common/zutil_import.c): fstyp prints
// the same as for a blank one.

// Exit codes of fstyp are the errors of libfstyp.h.
const (
	fstypNoMatch = 1
	fstypOpen    = 7
)

// Fstyp is the command fstyp.
func Fstyp(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := options(c.Args, "a", 1, 1)
	only(c.Zone == world.GlobalZone)
	unknown := func(why string, exit int) cli.Reply {
		return cli.Reply{Stderr: "unknown_fstyp (" + why + ")\n", Exit: exit}
	}
	device, err := zfs.OpenDevice(tx, operands[0])
	if err != nil {
		return unknown("cannot open device", fstypOpen)
	}
	pool, index := zfs.ReadLabel(tx, device)
	if pool == nil {
		return unknown("no matches", fstypNoMatch)
	}
	if _, attributes := given['a']; !attributes {
		return cli.Reply{Stdout: "zfs\n"}
	}
	return cli.Reply{Stdout: "zfs\n" + poolLabel(tx, pool, index)}
}

// poolLabel is dump_nvlist of the configuration in a label, in the order in
// which spa_config_generate and vdev_config_generate add to it, and of what the
// module adds. A boolean without a value is nothing that dump_nvlist knows.
//
// Guess fstyp-prints-of-metaslabs: what `fstyp -a` prints of metaslabs, host name and device id.
// Check: `fstyp -a` of a slice with a pool
func poolLabel(tx *world.Tx, p *world.Pool, index int) string {
	v := p.Vdevs[index]
	kind, path, whole := zfs.VdevPath(tx, v)
	where := fmt.Sprintf("    path: '%s'\n", path)
	if kind == "disk" {
		where += fmt.Sprintf("    phys_path: '%s'\n    whole_disk: %d\n", zfs.NodeOf(tx, v), map[bool]int{true: 1}[whole])
	}
	return fmt.Sprintf(`version: 5000
name: '%[1]s'
state: %[2]d
txg: %[3]d
pool_guid: %[4]d
errata: 0
hostid: %[5]d
hostname: 'sled'
top_guid: %[6]d
guid: %[6]d
vdev_children: 1
vdev_tree:
    type: '%[7]s'
    id: 0
    guid: %[6]d
%[8]s    metaslab_array: 68
    metaslab_shift: 34
    ashift: %[9]s
    asize: %[10]d
    is_log: 0
    create_txg: 4
features_for_read:
bad config type 1 for com.delphix:hole_birth
bad config type 1 for com.delphix:embedded_data
gen_clean: true
gen_guid: '%[6]d'
gen_version: '5000'
gen_volume_label: '%[1]s'
`, p.Name, zfs.LabelState(p), p.TXG, p.GUID, p.HostID, zfs.DeviceGUID(p, index), kind, where, zfs.Ashift(p), p.Size)
}
