package storage

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zpool(8): usr/src/cmd/zpool/zpool_main.c. Pools here have disks and files;
// groups of them, logs, caches and spares are not simulated.

// zpool is one run of the command.
type zpool struct {
	session
	paths bool // -P: devices are shown with their full paths
}

// Zpool is the command zpool.
func Zpool(tx *world.Tx, c cli.Call) cli.Reply {
	z := &zpool{session: session{tx: tx, call: c}}
	return z.dispatch(map[string]func([]string) int{
		"create": z.create, "destroy": z.destroy, "list": z.list, "status": z.status,
		"import": z.importPool, "export": z.export, "set": z.set, "clear": z.clear, "labelclear": z.labelClear,
	})
}

// pools are the imported pools of these names, or all, by name, whether they could
// be opened or not. A name without a pool is an error on standard error and exit code 1.
func (z *zpool) pools(names []string) (pools []*world.Pool, exit int) {
	for _, name := range names {
		if p := zfs.FindPool(z.tx, name); p != nil {
			pools = append(pools, p)
			continue
		}
		exit = z.fail("cannot open '%s': no such pool", name)
	}
	for _, p := range z.tx.State.Pools {
		if p.Imported && len(names) == 0 {
			pools = append(pools, p)
		}
	}
	slices.SortFunc(pools, func(a, b *world.Pool) int { return strings.Compare(a.Name, b.Name) })
	return slices.Compact(pools), exit
}

// create is zpool_do_create.
func (z *zpool) create(args []string) int {
	o := zfs.PoolOptions{Properties: map[string]string{}, Root: map[string]string{}}
	all, operands := cli.Getopt(args, "m:o:", nil)
	only(len(operands) == 2)
	name := operands[0]
	mountpoint := "/" + name
	for _, option := range all {
		switch option.Letter {
		case 'm':
			only(strings.HasPrefix(option.Value, "/"))
			mountpoint, o.Root["mountpoint"] = option.Value, option.Value
		case 'o':
			setting(o.Properties, option.Value)
		default:
			only(false)
		}
	}
	if entries, err := z.tx.Files.ReadDir(mountpoint); err == nil {
		only(len(entries) == 0)
	}
	if err := zfs.CreatePool(z.tx, name, operands[1], o); err != nil {
		return z.refused(err)
	}
	return z.refused(zfs.MountAuto(z.tx, name))
}

// destroy is zpool_do_destroy.
func (z *zpool) destroy(args []string) int {
	_, operands := options(args, "", 1, 1)
	if z.stuck(operands[0]) {
		return 0
	}
	return z.refused(zfs.DestroyPool(z.tx, operands[0], false))
}

// export is zpool_do_export.
func (z *zpool) export(args []string) int {
	_, operands := options(args, "", 1, 1)
	if z.stuck(operands[0]) {
		return 0
	}
	return z.refused(zfs.ExportPool(z.tx, operands[0]))
}

// stuck says whether the command waits: what has to be written to a suspended
// pool before it can go is not written until zpool clear, whatever failmode says
// (txg_wait_synced in usr/src/uts/common/fs/zfs/txg.c).
func (z *zpool) stuck(pool string) bool {
	awake := func(tx *world.Tx) bool {
		p := zfs.FindPool(tx, pool)
		return p == nil || !zfs.Lost(p) || p.Unloaded
	}
	call := z.call
	z.next = &cli.Next{Until: awake, Do: func(tx *world.Tx) cli.Reply { return Zpool(tx, call) }}
	if awake(z.tx) {
		z.next = nil
	}
	return z.next != nil
}

// set is zpool_do_set.
func (z *zpool) set(args []string) int {
	_, operands := options(args, "", 2, 2)
	name, value, ok := strings.Cut(operands[0], "=")
	only(ok)
	return z.refused(zfs.SetPoolProperty(z.tx, operands[1], name, value))
}

// clear makes a pool work again whose devices are back (zpool_do_clear).
func (z *zpool) clear(args []string) int {
	_, operands := options(args, "", 1, 1)
	return z.refused(zfs.ClearPool(z.tx, operands[0]))
}

// labelClear wipes what a pool that is not imported has left on a slice, with -f if
// it is not destroyed (zpool_do_labelclear).
func (z *zpool) labelClear(args []string) int {
	given, operands := options(args, "f", 1, 1)
	device, err := zfs.OpenDevice(z.tx, operands[0])
	only(err == nil && device.Disk != nil)
	_, force := given['f']
	pool, _ := zfs.ReadLabel(z.tx, device)
	only(pool != nil && !pool.Imported && force || pool == nil && zfs.Scrap(z.tx, device))
	return z.refused(zfs.ClearLabel(z.tx, device))
}

// list is zpool_do_list, for scripts (-H).
func (z *zpool) list(args []string) int {
	given, operands := options(args, "Ho:pPv", 0, len(args))
	fields, chosen := given['o']
	if !chosen {
		fields = "name,size,allocated,free,checkpoint,expandsize,fragmentation,capacity,dedupratio,health,altroot"
	}
	_, scripted := given['H']
	_, literal := given['p']
	_, verbose := given['v']
	_, z.paths = given['P']
	names := strings.Split(fields, ",")
	only(scripted || !verbose)
	columns := make([]column, len(names))
	for i, name := range names {
		only(zfs.FindPoolProperty(name) != nil)
		columns[i] = poolColumn(name)
	}
	pools, exit := z.pools(operands)
	s := zfs.NewSurvey(z.tx)
	var rows [][]string // for a person
	for _, p := range pools {
		cells := make([]string, len(names))
		for i, name := range names {
			cells[i] = s.PoolValue(p, name, literal)
		}
		if !scripted {
			rows = append(rows, cells)
			continue
		}
		z.row(cells)
		if verbose {
			z.devices(s, p, literal)
		}
	}
	z.table(columns, rows)
	return exit
}

// devices are the lines of zpool list -v below a pool: the same columns whatever
// -o says (print_list_stats).
//
// Guess device-sizes-are-the-pools: sizes of a top-level device in `zpool list -v` are its pool's;
// pools here have one as a rule.
// Check: `zpool list -v`
func (z *zpool) devices(s *zfs.Survey, p *world.Pool, literal bool) {
	columns := []string{"size", "allocated", "free", "checkpoint", "expandsize", "fragmentation", "capacity", "dedupratio", "health"}
	for _, v := range p.Vdevs {
		cells := []string{"", z.vdevName(v)}
		for _, property := range columns {
			value := "-"
			switch {
			case property == "health":
				value, _ = zfs.VdevState(z.tx, v)
			case property != "dedupratio" && !p.Unloaded:
				value = s.PoolValue(p, property, literal)
			}
			cells = append(cells, value)
		}
		z.row(cells)
	}
}
