// Package layout lays out a simulated sled from what a real one has answered: recorded
// outputs of illumos' commands. It reads them as their manual pages say, and knows nothing
// of who recorded them.
//
// What the outputs do not tell does not exist then: files, what VMs run, addresses inside zones.
// Lay reports what they tell and a simulated sled cannot have.
package layout

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/boot"
)

// Answer is the standard output of a command that succeeded.
type Answer struct {
	Argv   []string
	Stdout string
}

// Options are those of the sled to lay the answers out on: without disks and links.
func Options(all []Answer) boot.Options {
	o := boot.Options{Seed: 1, Mode: world.OmniOS, M2: -1, U2: -1, Links: -1}
	kernel := strings.TrimSpace(layout{all: all}.output("uname -v"))
	switch {
	case strings.HasPrefix(kernel, "helios"):
		o.Mode = world.Helios
		o.Installed = !strings.Contains(layout{all: all}.output("zpool list -HpvP"), "ramdisk")
	case strings.HasPrefix(kernel, "joyent"):
		o.Mode = world.SmartOS
	default:
		o.Ramdisk = strings.Contains(layout{all: all}.output("zpool list -HpvP"), "ramdisk")
	}
	return o
}

// layout is the work of one Lay.
type layout struct {
	tx    *world.Tx
	all   []Answer
	notes []string
}

// Lay lays out on a sled made with Options what the answers tell. The notes say what it
// could not.
func Lay(tx *world.Tx, all []Answer) (notes []string, err error) {
	l := &layout{tx: tx, all: all}
	l.identity()
	l.disks()
	l.pools()
	if err := l.datasets(); err != nil {
		return nil, err
	}
	l.links()
	if err := l.zones(); err != nil {
		return nil, err
	}
	l.addresses()
	l.routes()
	l.memory()
	if err := l.services(world.GlobalZone, l.output("svcs -a -H -o state,fmri")); err != nil {
		return nil, err
	}
	return l.notes, nil
}

func (l *layout) note(format string, args ...any) {
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// output is what the first command that begins with words, or with their like, printed.
func (l layout) output(words ...string) string {
	for _, a := range l.all {
		line := strings.Join(a.Argv, " ") + " "
		if slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(line, w+" ") }) {
			return a.Stdout
		}
	}
	return ""
}

// lines are the lines of an output, cut at a separator.
func lines(out, separator string) (all [][]string) {
	for line := range strings.Lines(out) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			all = append(all, strings.Split(line, separator))
		}
	}
	return all
}

// parsable are the rows of output for programs: colons part fields, a backslash takes the
// next character as it is.
func parsable(out string, fields int) (all [][]string) {
	for line := range strings.Lines(out) {
		row := []string{""}
		for i := 0; i < len(line); i++ {
			last := &row[len(row)-1]
			switch c := line[i]; {
			case c == '\n':
			case c == '\\' && i+1 < len(line):
				i++
				*last += string(line[i])
			case c == ':':
				row = append(row, "")
			default:
				*last += string(c)
			}
		}
		if len(row) >= fields {
			all = append(all, row)
		}
	}
	return all
}

func number(s string) uint64 {
	n, _ := strconv.ParseUint(s, 10, 64)
	return n
}

// identity is which kernel the sled has, and when it was booted.
func (l *layout) identity() {
	s := l.tx.State
	s.Facts = map[string]string{world.FactKernel: strings.TrimSpace(l.output("uname -v"))}
	processors := lines(l.output("psrinfo"), "\t")
	if len(processors) > 0 {
		_, since, _ := strings.Cut(processors[0][len(processors[0])-1], "since ")
		if t, err := time.Parse("01/02/2006 15:04:05", strings.TrimSpace(since)); err == nil {
			s.Booted = t
		}
		if s.Processors = len(processors); s.Processors == world.UsualProcessors {
			s.Processors = 0
		}
	}
	if mib := strings.TrimSpace(l.output("prtconf -m")); mib != "" && mib != strconv.Itoa(world.MemoryMiB) {
		l.note("%s MiB of memory: a simulated sled has %d", mib, world.MemoryMiB)
	}
}

// memory is the VMM's: what the recording says that VMs have taken, some VM has.
func (l *layout) memory() {
	mib := map[string]uint64{}
	for _, f := range lines(l.output("rsrvrctl -q"), ":") {
		if len(f) == 2 {
			mib[f[0]] = number(strings.TrimSpace(f[1])) << 20
		}
	}
	l.tx.State.Reservoir = mib["Free MiB"] + mib["Allocated MiB"]
	for reserved, bytes := range map[bool]uint64{true: mib["Allocated MiB"], false: mib["Transient Allocated MiB"]} {
		if bytes > 0 {
			l.tx.State.Processes = append(l.tx.State.Processes, &world.Process{
				PID: int(l.tx.Count("pid")) + 1000, Zone: world.GlobalZone, Argv: []string{"bhyve"},
				VM: &world.VM{Memory: bytes, Reserved: reserved, Timeline: []world.Timepoint{{State: "Running", Generation: 1, From: l.tx.Now}}},
			})
		}
	}
	if mib["Allocated MiB"]+mib["Transient Allocated MiB"] > 0 {
		l.note("the VMs: their memory is taken, their servers do not answer")
	}
}

// directory makes a directory of the sled.
func (l *layout) directory(name string) error {
	if err := host.MkdirAll(l.tx.Files, name, 0o755); err != nil {
		return fmt.Errorf("lay out %s: %w", name, err)
	}
	return nil
}

// disks are the disks of the device tree with a slot, and the serial number of one without.
func (l *layout) disks() {
	l.tx.State.Disks = nil
	for _, d := range deviceTree(l.output("prtconf -vD")) {
		if d.board != "" {
			l.tx.State.Facts[world.FactBoard] = d.board
			continue
		}
		if d.driver != "blkdev" || d.slot < 0 {
			if l.tx.State.Facts[world.FactBootDisk] != "" || d.driver != "sd" {
				l.note("disk %s: it is in no slot", d.name)
			}
			l.tx.State.Facts[world.FactBootDisk] = d.serial
			continue
		}
		disk := &world.Disk{Name: d.name, Kind: "u2", Slot: d.slot, Vendor: d.vendor, Model: d.model, Serial: d.serial, Size: d.size, Layout: "whole"}
		if d.slot >= firstM2 {
			disk.Kind, disk.Layout = "m2", "m2"
		}
		l.tx.State.Disks = append(l.tx.State.Disks, disk)
	}
}

// firstM2 is the first slot of an M.2 on a Gimlet (omicron sled-hardware, illumos/gimlet.rs).
const firstM2 = 0x11

// pools are the imported pools. Of one with several devices the simulated sled knows the
// devices, not how they are joined.
func (l *layout) pools() {
	l.tx.State.Pools = nil
	shown := statusNames(l.output("zpool status"))
	var p *world.Pool
	for _, f := range lines(l.output("zpool list -HpvP"), "\t") {
		switch {
		case f[0] != "" && len(f) >= 7:
			p = &world.Pool{
				Name: f[0], Size: number(f[1]), Health: f[4], GUID: number(f[5]), Imported: true, TXG: l.tx.Count("txg"),
				HostID: 1, Accessed: l.tx.Now.Unix(), Properties: map[string]string{"ashift": "12", "failmode": f[6]},
			}
			p.Ballast = number(f[2])
			l.tx.State.Pools = append(l.tx.State.Pools, p)
		case f[0] == "" && len(f) > 1 && p != nil:
			l.vdev(p, f[1], shown)
		}
	}
}

func (l *layout) vdev(p *world.Pool, name string, shown []string) {
	short, device := strings.CutPrefix(name, "/dev/dsk/")
	switch {
	case device && !slices.Contains(shown, short): // a whole disk stands without its slice
		short = short[:max(0, strings.LastIndex(short, "s"))]
		if slices.Contains(shown, short) {
			break
		}
		fallthrough
	case !device && !strings.HasPrefix(name, "/"):
		l.note("pool %s: its %s", p.Name, name)
		return
	case !device:
		short = name
	}
	p.Vdevs = append(p.Vdevs, short)
	for _, d := range l.tx.State.Disks {
		if short == d.Name || strings.HasPrefix(short, d.Name+"s") {
			d.Pool = p.Name
		}
	}
}

// statusNames are the names of devices as zpool status has them.
func statusNames(out string) (names []string) {
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); strings.HasPrefix(line, "\t") && len(f) > 1 {
			names = append(names, f[0])
		}
	}
	return names
}

// mountpoints are where the recording says that datasets are mounted.
func (l *layout) mountpoints() map[string]string {
	at := map[string]string{}
	for line := range strings.Lines(l.output("mount -p")) {
		if f := strings.Fields(line); len(f) > 3 && f[3] == "zfs" {
			at[f[0]] = path.Clean(f[2])
		}
	}
	return at
}
