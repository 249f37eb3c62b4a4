package storage

import (
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// status is zpool_do_status.
func (z *zpool) status(args []string) int {
	given, operands := options(args, "x", 0, len(args))
	_, troubled := given['x']
	pools, exit := z.pools(operands)
	if troubled {
		only(len(operands) == 0)
		pools = slices.DeleteFunc(pools, func(p *world.Pool) bool { return p.Health == "ONLINE" && !p.Unloaded })
		if len(pools) == 0 {
			z.out.WriteString("all pools are healthy\n")
		}
	}
	for i, p := range pools {
		if i > 0 {
			z.out.WriteByte('\n')
		}
		z.describe(p)
	}
	return exit
}

// trouble is what is wrong with a pool, what to do about it, and the number of
// the article (zpool_get_status in libzfs_status.c).
func trouble(p *world.Pool) string {
	if p.Health == "ONLINE" {
		return ""
	}
	article := "ZFS-8000-JQ"
	if zfs.Waits(p) {
		article = "ZFS-8000-HC"
	}
	return "status: One or more devices are faulted in response to IO failures.\n" +
		"action: Make sure the affected devices are connected, then run 'zpool clear'.\n   see: http://illumos.org/msg/" + article + "\n"
}

// describe is the status of one pool (status_callback).
func (z *zpool) describe(p *world.Pool) {
	only(!p.Unloaded)
	fmt.Fprintf(&z.out, "  pool: %s\n state: %s\n%s  scan: none requested\nconfig:\n\n", p.Name, p.Health, trouble(p))
	fmt.Fprintf(&z.out, "\t%-*s  %-8s %5s %5s %5s\n", z.width(p), "NAME", "STATE", "READ", "WRITE", "CKSUM")
	z.tree(p, func(state, why string) string {
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
	for _, v := range p.Vdevs {
		width = max(width, len("  ")+len(z.vdevName(v)))
	}
	return width
}

// vdevName is zpool_vdev_name in usr/src/lib/libzfs/common/libzfs_pool.c.
func (z *zpool) vdevName(v string) string {
	if z.paths {
		_, v, _ = zfs.VdevPath(z.tx, v)
	}
	return v
}

// tree is a pool and its devices below it, with what end makes of their states.
func (z *zpool) tree(p *world.Pool, end func(state, why string) string) {
	width := z.width(p)
	state, why := p.Health, ""
	if zfs.Lost(p) {
		state, why = "UNAVAIL", "insufficient replicas"
	}
	fmt.Fprintf(&z.out, "\t%-*s  %s\n", width, p.Name, end(state, why))
	for _, v := range p.Vdevs {
		fmt.Fprintf(&z.out, "\t  %-*s  %s\n", width-2, z.vdevName(v), end(zfs.VdevState(z.tx, v)))
	}
}
