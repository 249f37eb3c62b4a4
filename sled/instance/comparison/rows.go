package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/ports"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zone"
)

// unseen stands for what was not looked at, and none for nothing.
const (
	unseen = "-"
	none   = "none"
)

// rows compares field by field. It is pure.
func rows(b layout.Blueprint, i instance.Instance, look seen) []Row {
	all := []Row{runRow(i)}
	cpus, memory := unseen, unseen
	if look.machine != nil {
		cpus, memory = strconv.Itoa(int(look.machine.Board.CPUs)), record.SizeText(look.machine.Board.MemoryMiB<<20)
	}
	all = append(all, judged("cpus", strconv.Itoa(i.Spec.CPUs), cpus), judged("memory", record.SizeText(i.Spec.Memory), memory))
	all = append(all, nicRows(i, look)...)
	all = append(all, controlRow(i, look))
	all = append(all, diskRows(i, look)...)
	all = append(all, cloudInitRows(i, look)...)
	all = append(all, Row{Field: "protected", Wanted: map[bool]string{true: "yes", false: "no"}[i.Protected], Observed: unseen})
	if i.Spec.StartOrder != 0 {
		all = append(all, Row{Field: "start-order", Wanted: i.Spec.StartOrder.String(), Observed: unseen})
	}
	all = append(all, zoneRows(b, i, look)...)
	return append(all, machineRows(look)...)
}

// judged is a row with its verdict: what was not seen has none.
func judged(field, wanted, observed string) Row {
	r := Row{Field: field, Wanted: wanted, Observed: observed, Verdict: Same}
	switch observed {
	case unseen:
		r.Verdict = ""
	case wanted:
	default:
		r.Verdict = Differs
	}
	return r
}

// runRow compares the state. One that is on its way is not judged.
func runRow(i instance.Instance) Row {
	r := judged("run", i.Wanted, i.State)
	moving := []record.State{record.Creating, record.Stopping, "starting", "rebooting", "migrating", record.Unknown}
	if slices.Contains(moving, i.State) {
		r.Verdict = ""
	}
	return r
}

func nicText(n record.NIC) string {
	text := n.LinkText() + " " + n.MAC
	if n.MaxBW != 0 {
		text += fmt.Sprintf(" max-bw %d", n.MaxBW)
	}
	if len(n.AllowIP) > 0 {
		text += " allow-ip " + strings.Join(n.AllowIP, ",")
	}
	return text
}

// nicRows compares each guest NIC with the VNIC that was made for it.
func nicRows(i instance.Instance, look seen) []Row {
	var all []Row
	for n, nic := range i.Spec.NICs {
		row := Row{Field: fmt.Sprintf("nic %d", n), Wanted: nicText(nic), Observed: unseen}
		if i.Incarnation != nil && n < len(i.Incarnation.Guests) {
			row.Observed, row.Verdict, row.Mendable = guestOf(i.Record, look, i.Incarnation.Guests[n])
		}
		all = append(all, row)
	}
	return all
}

// guestOf is linkOf, and what a guest VNIC is not held to although it should be, or is
// although it should not; mendable, if ensure puts it back while the VM runs on.
func guestOf(r record.Record, look seen, v record.VNIC) (observed, verdict string, mendable bool) {
	observed, verdict = linkOf(look, v)
	if in, asked := look.ports[v.Name]; verdict == Same && asked {
		if lacks := ports.Lacks(r, v, in); lacks != "" {
			return v.Name + ", " + lacks, Differs, true
		}
	}
	limits, read := look.limits[v.Name]
	if differs := limits.Differs(layout.LimitsOf(r, v)); verdict == Same && read && differs != "" {
		return v.Name + ", " + differs, Differs, true
	}
	return observed, verdict, false
}

// linkOf is the link that a VNIC is: its name, or in what it differs.
func linkOf(look seen, v record.VNIC) (observed, verdict string) {
	if look.inv.Know(inventory.Links) != nil {
		return unseen, ""
	}
	l, there := look.inv.Link(v.Name)
	switch {
	case !there:
		return "no " + v.Name, Differs
	case v.Port && look.inv.Know(inventory.Ports) != nil:
		return unseen, ""
	case !v.Is(l):
		return v.Name + " is " + strings.TrimSpace(nicText(record.NIC{Over: l.Over, MAC: l.MAC, VLAN: l.VLAN})), Differs
	}
	return v.Name, Same
}

func controlRow(i instance.Instance, look seen) Row {
	row := Row{Field: "control", Wanted: strings.TrimSpace(i.Spec.Address.String() + " " + i.Control), Observed: unseen}
	if i.Incarnation != nil {
		row.Observed, row.Verdict = linkOf(look, i.Incarnation.Control)
	}
	return row
}

// diskRows compares the disks with what the zone's configuration lets in.
func diskRows(i instance.Instance, look seen) []Row {
	var config zone.Config
	known := false
	if i.Incarnation != nil && !i.Incarnation.Foreign && look.inv.Know(inventory.Configs) == nil {
		config, known = look.inv.Config(i.Incarnation.Zone)
	}
	var all []Row
	if i.Later != nil {
		all = append(all, Row{Field: "disks", Wanted: record.DiskText(*i.Later), Observed: "with its next bring-up"})
	}
	if len(i.Spec.Disks) == 0 && i.Later == nil {
		return []Row{{Field: "disks", Wanted: none, Observed: unseen}}
	}
	for n, d := range i.Spec.Disks {
		row := Row{Field: fmt.Sprintf("disk %d", n), Wanted: diskText(d), Observed: unseen}
		if d.ReadOnly {
			row.Wanted += " readonly"
		}
		within := slices.Contains(config.Devices, d.Path) || slices.ContainsFunc(config.FS, func(f zone.FS) bool { return f.Special == d.Path })
		switch {
		case known && within:
			row.Observed, row.Verdict = "in its zone", Same
		case known:
			row.Observed, row.Verdict = "not in its zone", Differs
		}
		all = append(all, row)
	}
	return all
}

// diskText is how people call a disk: a volume by its name, or by its dataset, and a file by its own.
func diskText(d record.Disk) string {
	dataset, ok := d.Volume()
	if !ok {
		return d.Path
	}
	if _, name, ours := naming.ParseVolume(dataset); ours {
		return "volume " + name
	}
	return dataset
}

// cloudInitRows compare what the guest is to be told with what its VM was given. One that nobody
// has told anything has none.
func cloudInitRows(i instance.Instance, look seen) []Row {
	c, given := i.Spec.CloudInit, ""
	if look.machine != nil && !i.Spec.OwnCloudInit() {
		blob, _ := look.machine.Components[spec.KeyCloudInit].(spec.BlobStorage)
		given = blob.Base64
	}
	if c == nil && given == "" {
		return nil
	}
	row := Row{Field: "cloud-init", Wanted: c.Text(), Observed: unseen}
	switch {
	case look.machine == nil || look.lost && c != nil && given != "":
	case c != nil && c.Volume == given:
		row.Observed, row.Verdict = "given to its VM", Same
	case given == "":
		row.Observed, row.Verdict = "not given to its VM", Differs
	default:
		row.Observed, row.Verdict = "its VM was given other data", Differs
	}
	return []Row{row}
}

// zoneRows are the properties in which the zone's configuration is not as it was made.
func zoneRows(b layout.Blueprint, i instance.Instance, look seen) []Row {
	if i.Incarnation == nil || i.Incarnation.Foreign || look.inv.Know(inventory.Configs) != nil {
		return nil
	}
	found, there := look.inv.Config(i.Incarnation.Zone)
	if !there {
		return nil
	}
	wanted := layout.ZoneConfig(b, i.Record)
	var all []Row
	for _, d := range zone.Compare(wanted, found) {
		row := Row{Field: "zone " + d.Property, Wanted: d.Wanted, Observed: d.Found, Verdict: Differs}
		if w, f := links(wanted.Nets), links(found.Nets); d.Property == "net" && !slices.Equal(w, f) {
			row.Wanted, row.Observed, row.Change = strings.Join(w, " "), strings.Join(f, " "), change(w, f)
		}
		row.Wanted, row.Observed = cmp.Or(row.Wanted, none), cmp.Or(row.Observed, none)
		all = append(all, row)
	}
	return all
}

func links(nets []zone.Net) []string {
	var names []string
	for _, n := range nets {
		names = append(names, n.Physical)
	}
	return names
}

// change is what found has and wanted has not, and the other way round.
func change(wanted, found []string) string {
	var words []string
	for _, f := range found {
		if !slices.Contains(wanted, f) {
			words = append(words, "+ "+f)
		}
	}
	for _, w := range wanted {
		if !slices.Contains(found, w) {
			words = append(words, "- "+w)
		}
	}
	return strings.Join(words, ", ")
}

// machineRows are the parts in which the VM is not the one that Propolis was asked for.
func machineRows(look seen) []Row {
	if look.machine == nil || look.sent == nil {
		return nil
	}
	var all []Row
	for _, d := range spec.Compare(*look.sent, *look.machine) {
		all = append(all, Row{Field: "spec " + d.Path, Wanted: cmp.Or(d.Sent, none), Observed: cmp.Or(d.Got, none), Verdict: Differs})
	}
	return all
}
