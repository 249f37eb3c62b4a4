package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// zpool list, get, set and status: zpool_do_list, zpool_do_get, zpool_do_set
// and zpool_do_status in zpool_main.c.

// properties reads a list of properties. It is not ok, and says why with the
// usage, if one is none.
func (z *zpool) properties(list string) (names []string, ok bool) {
	switch list {
	case "all":
		for _, p := range world.PoolProperties() {
			names = append(names, p.Name)
		}
		for _, f := range world.PoolFeatures() {
			names = append(names, "feature@"+f)
		}
		return names, true
	case "":
		z.usage("bad property list: no properties specified")
		return nil, false
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(list, ","), ",") {
		p := world.FindPoolProperty(name)
		switch {
		case name == "":
			z.usage("bad property list: empty property name")
			return nil, false
		case p != nil:
			name = p.Name
		case !strings.HasPrefix(name, "feature@") && !strings.HasPrefix(name, "unsupported@"):
			z.usage("bad property list: invalid property '%s'", name)
			return nil, false
		}
		names = append(names, name)
	}
	return names, true
}

func (z *zpool) list(args []string) int {
	options, operands, bad := z.options(args, "gHLo:pPT:v", missingArgument)
	if bad {
		return 2
	}
	fields := "name,size,allocated,free,checkpoint,expandsize,fragmentation,capacity,dedupratio,health,altroot"
	scripted, literal, verbose, paths := false, false, false, false
	for _, o := range options {
		switch o.Letter {
		case 'H':
			scripted = true
		case 'o':
			fields = o.Value
		case 'p':
			literal = true
		case 'v':
			verbose = true
		case 'P':
			paths = true
		case 'T', 'g', 'L':
			return z.usage("'zpool list -%c' is not simulated", o.Letter)
		}
	}
	if verbose && !scripted {
		return z.usage("'zpool list -v' without -H is not simulated")
	}
	names, ok := z.properties(fields)
	if !ok {
		return 2
	}
	pools, exit := z.pools(operands)
	if verbose {
		for _, p := range pools {
			z.table([]*world.Pool{p}, names, scripted, literal)
			z.devices(p, literal, paths)
		}
		return exit
	}
	z.table(pools, names, scripted, literal)
	if len(operands) == 0 && len(pools) == 0 && !scripted {
		z.out.WriteString("no pools available\n")
	}
	return exit
}

func (z *zpool) table(pools []*world.Pool, names []string, scripted, literal bool) {
	s := z.tx.Survey()
	rows := make([][]string, len(pools))
	for i, p := range pools {
		for _, name := range names {
			value, _, ok := s.PoolValue(p, name, literal)
			if !ok {
				value = "-"
			}
			rows[i] = append(rows[i], value)
		}
	}
	if scripted {
		for _, row := range rows {
			z.out.WriteString(strings.Join(row, "\t") + "\n")
		}
		return
	}
	if len(rows) == 0 {
		return
	}
	head := make([]string, len(names))
	widths := make([]int, len(names))
	right := make([]bool, len(names))
	for j, name := range names {
		head[j], widths[j] = strings.ToUpper(name), len(name)
		fixed := false
		if p := world.FindPoolProperty(name); p != nil {
			head[j], right[j] = p.Column, p.Right()
			widths[j], fixed = p.Width()
		}
		for i := range rows {
			if !fixed || literal {
				widths[j] = max(widths[j], len(rows[i][j]))
			}
		}
	}
	for _, row := range append([][]string{head}, rows...) {
		for j, cell := range row {
			if j > 0 {
				z.out.WriteString("  ")
			}
			pad := fmt.Sprintf("%*s", max(0, widths[j]-len(cell)), "")
			switch {
			case right[j]:
				z.out.WriteString(pad + cell)
			case j == len(row)-1:
				z.out.WriteString(cell)
			default:
				z.out.WriteString(cell + pad)
			}
		}
		z.out.WriteByte('\n')
	}
}

// devices are the lines below a pool's, whose columns do not depend on -o: size,
// allocated, free, checkpoint, expandsize, fragmentation, capacity, dedup ratio
// and state; sizes only of those right below the pool (print_list_stats). A
// name is the disk's without its first slice, or with -P the path of the slice
// that is in the pool (zpool_vdev_name of usr/src/lib/libzfs/common/libzfs_pool.c).
func (z *zpool) devices(p *world.Pool, literal, paths bool) {
	s := z.tx.Survey()
	var figures []string
	for _, name := range []string{"size", "allocated", "free", "checkpoint", "expandsize", "fragmentation", "capacity"} {
		value, _, _ := s.PoolValue(p, name, literal)
		figures = append(figures, value)
	}
	none := slices.Repeat([]string{"-"}, len(figures))
	groups := 0
	for _, v := range p.Vdevs {
		values, state := figures, p.Health
		switch group := slices.Contains([]string{"mirror", "raidz", "raidz1", "raidz2", "raidz3"}, v); {
		case group:
			v = fmt.Sprintf("%s-%d", v, groups)
			groups++
		case groups > 0:
			values = none
			fallthrough
		default:
			state = z.deviceState(p, v)
			if paths && !strings.HasPrefix(v, "/") {
				v = devicePath(v)
			}
		}
		fmt.Fprintf(&z.out, "\t%s\t%s\t-\t%s\n", v, strings.Join(values, "\t"), state)
	}
}

func (z *zpool) deviceState(p *world.Pool, device string) string {
	switch {
	case z.gone(device):
		return "UNAVAIL"
	case p.Health != "ONLINE":
		return "ONLINE"
	}
	return p.Health
}

// devicePath is the slice of a disk that a pool has, if it was given the whole
// disk the first.
func devicePath(disk string) string {
	if i := strings.LastIndexByte(disk, 's'); i < 0 || strings.IndexByte(disk, 'd') > i {
		disk += "s0"
	}
	return "/dev/dsk/" + disk
}

func (z *zpool) get(args []string) int {
	options, operands, bad := z.options(args, "Hpo:", missingArgument)
	if bad {
		return 2
	}
	p := newPrinter(&z.out)
	literal, fault := false, ""
	for _, o := range options {
		switch o.Letter {
		case 'H':
			p.scripted = true
		case 'p':
			literal = true
		case 'o':
			p.fields, fault = readFields(o.Value, []field{fieldName, fieldProperty, fieldValue, fieldSource})
		}
		if fault != "" {
			return z.usage("%s", fault)
		}
	}
	if len(operands) == 0 {
		return z.usage("missing property argument")
	}
	names, ok := z.properties(operands[0])
	if !ok {
		return 2
	}
	pools, exit := z.pools(operands[1:])
	s := z.tx.Survey()
	p.widths = [fieldCount]int{len("NAME"), len("PROPERTY"), len("VALUE"), len("RECEIVED"), len("SOURCE")}
	for _, pool := range pools {
		p.widths[fieldName] = max(p.widths[fieldName], len(pool.Name))
		for _, name := range names {
			value, _, _ := s.PoolValue(pool, name, literal)
			p.widths[fieldProperty] = max(p.widths[fieldProperty], len(name))
			p.widths[fieldValue] = max(p.widths[fieldValue], len(value))
		}
	}
	for _, pool := range pools {
		for _, name := range names {
			if value, source, ok := s.PoolValue(pool, name, literal); ok {
				p.line(pool.Name, name, value, source)
			}
		}
	}
	return exit
}

func (z *zpool) set(args []string) int {
	switch {
	case len(args) > 0 && strings.HasPrefix(args[0], "-"):
		return z.usage("invalid option '%s'", (args[0] + " ")[1:2])
	case len(args) == 0:
		return z.usage("missing property=value argument")
	case len(args) == 1:
		return z.usage("missing pool name")
	case len(args) > 2:
		return z.usage("too many pool names")
	}
	name, value, ok := strings.Cut(args[0], "=")
	if !ok {
		return z.usage("missing value in property=value argument")
	}
	return z.refused(z.tx.SetPoolProperty(args[1], name, value))
}

func (z *zpool) status(args []string) int {
	options, operands, bad := z.options(args, "igLpPsvxDT:", "")
	if bad {
		return 2
	}
	healthy := false
	for _, o := range options {
		if o.Letter == 'T' {
			return z.usage("'zpool status -T' is not simulated")
		}
		healthy = healthy || o.Letter == 'x'
	}
	pools, exit := z.pools(operands)
	all := len(pools)
	if healthy {
		pools = slices.DeleteFunc(pools, func(p *world.Pool) bool { return p.Health == "ONLINE" })
	}
	for i, p := range pools {
		if i > 0 {
			z.out.WriteByte('\n')
		}
		z.describe(p)
	}
	switch {
	case exit != 0 || len(pools) > 0:
	case all == 0 && len(operands) == 0:
		z.out.WriteString("no pools available\n")
	case len(operands) == 0:
		z.out.WriteString("all pools are healthy\n")
	default:
		for _, name := range operands {
			fmt.Fprintf(&z.out, "pool '%s' is healthy\n", name)
		}
	}
	return exit
}

// describe is the status of one pool (status_callback).
func (z *zpool) describe(p *world.Pool) {
	fmt.Fprintf(&z.out, "  pool: %s\n state: %s\n  scan: none requested\nconfig:\n\n", p.Name, p.Health)
	width := max(10, len(p.Name))
	for _, v := range p.Vdevs {
		width = max(width, len(v)+4)
	}
	fmt.Fprintf(&z.out, "\t%-*s  %-8s %5s %5s %5s\n", width, "NAME", "STATE", "READ", "WRITE", "CKSUM")
	z.tree(p, width, func(state string) string { return fmt.Sprintf("%-8s     0     0     0", state) })
	z.out.WriteString("\nerrors: No known data errors\n")
}

// tree is the devices of a pool, indented by depth, with what end makes of
// their states.
func (z *zpool) tree(p *world.Pool, width int, end func(state string) string) {
	fmt.Fprintf(&z.out, "\t%-*s  %s\n", width, p.Name, end(p.Health))
	indent, groups := 2, 0
	for _, v := range p.Vdevs {
		state := p.Health
		switch {
		case slices.Contains([]string{"mirror", "raidz", "raidz1", "raidz2", "raidz3"}, v):
			fmt.Fprintf(&z.out, "\t  %-*s  %s\n", width-2, fmt.Sprintf("%s-%d", v, groups), end(p.Health))
			indent, groups = 4, groups+1
			continue
		case z.gone(v):
			state = "UNAVAIL"
		case p.Health != "ONLINE":
			state = "ONLINE"
		}
		fmt.Fprintf(&z.out, "\t%*s%-*s  %s\n", indent, "", width-indent, v, end(state))
	}
}

func (z *zpool) gone(vdev string) bool {
	d := z.tx.DiskOf(vdev)
	return d != nil && d.Gone
}
