package storage

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// fstyp(8): usr/src/cmd/fstyp/fstyp.c and usr/src/lib/libfstyp, with the module
// for ZFS, usr/src/cmd/fs.d/zfs/fstyp/fstyp.c; no other file system is known
// here. A device that can be opened but not read is one without a label
// (zpool_read_label in usr/src/lib/libzutil/common/zutil_import.c): fstyp says
// of it what it says of a blank one.

// Exit codes of fstyp are the errors of libfstyp.h.
const (
	fstypNoMatch = 1
	fstypOpen    = 7
)

// Fstyp is the command fstyp.
func Fstyp(tx *world.Tx, c cli.Call) cli.Reply {
	options, operands := cli.Getopt(c.Args, "av", nil)
	attributes := false
	for _, o := range options {
		attributes = true
		if o.Bad != "" {
			return cli.Reply{Stderr: "fstyp: illegal option -- " + o.Bad + "\nUsage: fstyp [-av] <device>\n", Exit: 1}
		}
	}
	if len(operands) != 1 {
		return cli.Reply{Stderr: "Usage: fstyp [-av] <device>\n", Exit: 1}
	}
	unknown := func(why string, exit int) cli.Reply {
		return cli.Reply{Stderr: "unknown_fstyp (" + why + ")\n", Exit: exit}
	}
	if c.Zone != world.GlobalZone {
		return unknown("cannot open device", fstypOpen) // A zone has no disks.
	}
	device, err := zfs.OpenDevice(tx, operands[0])
	if err != nil {
		return unknown("cannot open device", fstypOpen)
	}
	pool, index := zfs.ReadLabel(tx, device)
	if pool == nil {
		return unknown("no matches", fstypNoMatch)
	}
	if !attributes {
		return cli.Reply{Stdout: "zfs\n"}
	}
	return cli.Reply{Stdout: "zfs\n" + poolLabel(tx, pool, index)}
}

// poolLabel is dump_nvlist of the configuration in a label, in the order in
// which spa_config_generate and vdev_config_generate add to it, and of what the
// module adds.
//
// Guess: the arrays of metaslabs and the like, and the host's name.
func poolLabel(tx *world.Tx, p *world.Pool, index int) string {
	var b strings.Builder
	line := func(indent int, name, format string, args ...any) {
		fmt.Fprintf(&b, "%*s%s: "+format+"\n", append([]any{indent, "", name}, args...)...)
	}
	id := zfs.DeviceGUID(p, index)
	line(0, "version", "5000")
	line(0, "name", "'%s'", p.Name)
	line(0, "state", "%d", zfs.LabelState(p))
	line(0, "txg", "%d", p.TXG)
	line(0, "pool_guid", "%d", p.GUID)
	line(0, "errata", "0")
	line(0, "hostid", "%d", p.HostID)
	line(0, "hostname", "'%s'", "sled")
	line(0, "top_guid", "%d", id)
	line(0, "guid", "%d", id)
	line(0, "vdev_children", "1")
	b.WriteString("vdev_tree:\n")
	kind, path, whole := zfs.VdevPath(tx, p.Vdevs[index])
	line(4, "type", "'%s'", kind)
	line(4, "id", "0")
	line(4, "guid", "%d", id)
	line(4, "path", "'%s'", path)
	if kind == "disk" {
		if node := zfs.NodeOf(tx, p.Vdevs[index]); node != "" {
			line(4, "phys_path", "'%s'", node)
		}
		line(4, "whole_disk", "%d", map[bool]int{true: 1}[whole])
	}
	line(4, "metaslab_array", "68")
	line(4, "metaslab_shift", "34")
	line(4, "ashift", "%s", zfs.Ashift(p))
	line(4, "asize", "%d", p.Size)
	line(4, "is_log", "0")
	line(4, "create_txg", "4")
	b.WriteString("features_for_read:\n")
	for _, name := range []string{"com.delphix:hole_birth", "com.delphix:embedded_data"} {
		// A boolean without a value is nothing that dump_nvlist knows.
		fmt.Fprintf(&b, "bad config type 1 for %s\n", name)
	}
	line(0, "gen_clean", "true")
	line(0, "gen_guid", "'%s'", strconv.FormatUint(id, 10))
	line(0, "gen_version", "'5000'")
	line(0, "gen_volume_label", "'%s'", p.Name)
	return b.String()
}
