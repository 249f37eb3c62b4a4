package storage

import (
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zpool status and clear: status_callback, print_status_config and
// zpool_do_clear in zpool_main.c.

// vdevNaming is how devices are named: the flags of zpool_vdev_name in
// usr/src/lib/libzfs/common/libzfs_pool.c.
type vdevNaming uint

const (
	namePath  vdevNaming = 1 << iota // -P: the full path
	nameGUID                         // -g: the number in the label
	nameNodes                        // -L: where links lead
)

func naming(letter byte) vdevNaming {
	return map[byte]vdevNaming{'P': namePath, 'g': nameGUID, 'L': nameNodes}[letter]
}

func (z *zpool) status(args []string) int {
	options, operands, bad := z.options(args, "igLpPsvxDT:", "")
	if bad {
		return 2
	}
	healthy := false
	for _, o := range options {
		switch o.Letter {
		case 'T', 'i', 's', 'D':
			return z.usage("'zpool status -%c' is not simulated", o.Letter)
		case 'x':
			healthy = true
		default:
			z.naming |= naming(o.Letter)
		}
	}
	pools, exit := z.pools(operands, false)
	all := len(pools)
	if healthy {
		pools = slices.DeleteFunc(pools, func(p *world.Pool) bool {
			well := p.Health == "ONLINE" && !p.Unloaded
			if well && len(operands) > 0 {
				fmt.Fprintf(&z.out, "pool '%s' is healthy\n", p.Name)
			}
			return well
		})
	}
	for i, p := range pools {
		if i > 0 {
			z.out.WriteByte('\n')
		}
		z.describe(p)
	}
	switch {
	case all == 0 && len(operands) == 0:
		z.out.WriteString("no pools available\n")
	case healthy && len(pools) == 0 && len(operands) == 0:
		z.out.WriteString("all pools are healthy\n")
	}
	return exit
}

// trouble is what is wrong with a pool, what to do about it, and the number of
// the article (zpool_get_status in libzfs_status.c).
func (z *zpool) trouble(p *world.Pool) string {
	const missing = "status: One or more devices could not be opened.  "
	const attach = "action: Attach the missing device and online it using 'zpool online'.\n   see: http://illumos.org/msg/"
	switch {
	case p.Unloaded:
		return missing + "There are insufficient\n\treplicas for the pool to continue functioning.\n" + attach + "ZFS-8000-3C\n"
	case zfs.Lost(p):
		article := "ZFS-8000-JQ"
		if zfs.Waits(p) {
			article = "ZFS-8000-HC"
		}
		return "status: One or more devices are faulted in response to IO failures.\n" +
			"action: Make sure the affected devices are connected, then run 'zpool clear'.\n   see: http://illumos.org/msg/" + article + "\n"
	case p.Health == "ONLINE":
		return ""
	}
	for _, v := range p.Vdevs {
		if state, _ := zfs.VdevState(z.tx, v); state == "FAULTED" {
			return "status: One or more devices are faulted in response to persistent errors.\n" +
				"\tSufficient replicas exist for the pool to continue functioning in a\n\tdegraded state.\n" +
				"action: Replace the faulted device, or use 'zpool clear' to mark the device\n\trepaired.\n   see: http://illumos.org/msg/ZFS-8000-K4\n"
		}
	}
	return missing + "Sufficient replicas exist for\n\tthe pool to continue functioning in a degraded state.\n" + attach + "ZFS-8000-2Q\n"
}

// describe is the status of one pool (status_callback).
func (z *zpool) describe(p *world.Pool) {
	state := p.Health
	if p.Unloaded {
		state = "UNAVAIL"
	}
	fmt.Fprintf(&z.out, "  pool: %s\n state: %s\n%s  scan: none requested\nconfig:\n\n", p.Name, state, z.trouble(p))
	width := z.width(p)
	fmt.Fprintf(&z.out, "\t%-*s  %-8s %5s %5s %5s\n", width, "NAME", "STATE", "READ", "WRITE", "CKSUM")
	z.tree(p, width, func(state, why string) string {
		line := fmt.Sprintf("%-8s %5d %5d %5d", state, 0, 0, 0)
		if state == "FAULTED" {
			line = fmt.Sprintf("%-8s %5d %5d %5d", state, 3, 6, 0)
		}
		if why != "" {
			line += "  " + why
		}
		return line
	})
	z.out.WriteString("\nerrors: No known data errors\n")
}

// width is how wide the names of a pool and its devices are (max_width).
func (z *zpool) width(p *world.Pool) int {
	width := max(10, len(p.Name))
	for _, v := range z.vdevRows(p) {
		width = max(width, v.depth+len(v.name))
	}
	return width
}

// vdevRow is a device of a pool, or a group of them.
type vdevRow struct {
	name       string
	depth      int
	state, why string
}

// vdevRows are the devices of a pool in the order of its configuration.
func (z *zpool) vdevRows(p *world.Pool) []vdevRow {
	var rows []vdevRow
	for i, v := range p.Vdevs {
		row := vdevRow{name: z.vdevName(p, i), depth: 2}
		row.state, row.why = zfs.VdevState(z.tx, v)
		rows = append(rows, row)
	}
	return rows
}

// vdevName is zpool_vdev_name.
func (z *zpool) vdevName(p *world.Pool, index int) string {
	v := p.Vdevs[index]
	_, path, _ := zfs.VdevPath(z.tx, v)
	switch {
	case z.naming&nameGUID != 0:
		return fmt.Sprint(zfs.DeviceGUID(p, index))
	case z.naming&nameNodes != 0 && zfs.NodeOf(z.tx, v) != "":
		return "/devices" + zfs.NodeOf(z.tx, v)
	case z.naming&namePath != 0:
		return path
	}
	return v
}

// tree is a pool and its devices, indented by depth, with what end makes of
// their states.
func (z *zpool) tree(p *world.Pool, width int, end func(state, why string) string) {
	state, why := p.Health, ""
	if zfs.Lost(p) {
		state, why = "UNAVAIL", "insufficient replicas"
	}
	fmt.Fprintf(&z.out, "\t%-*s  %s\n", width, p.Name, end(state, why))
	for _, v := range z.vdevRows(p) {
		fmt.Fprintf(&z.out, "\t%*s%-*s  %s\n", v.depth, "", width-v.depth, v.name, end(v.state, v.why))
	}
}

// clear goes on with a pool whose devices are back.
func (z *zpool) clear(args []string) int {
	options, operands, bad := z.options(args, "FnX", "")
	switch {
	case bad:
		return 2
	case len(operands) == 0:
		return z.usage("missing pool name")
	case len(operands) > 2:
		return z.usage("too many arguments")
	case len(options) > 0:
		return z.usage("'zpool clear -%c' is not simulated", options[0].Letter)
	}
	device := ""
	if len(operands) == 2 {
		device = operands[1]
	}
	return z.refused(zfs.ClearPool(z.tx, operands[0], device))
}
