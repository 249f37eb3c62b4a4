// Package adoption reads records from zones that no record names. A zone that runs is
// inspected (Inspect); of the others the marks on their datasets are read (Recall).
// Package instance writes the records.
package adoption

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// An unrecorded zone is sledctl's, and no record names it: the ledger was lost, or
// another tool has made it. A process that chooses addresses, MACs and disks takes it into
// account, and Adopt makes a record of it. One that does not run is an unrecorded zone by
// its mark, and only while its instance is not recorded: else it is a remnant.

// Unrecorded is such a zone, with what its attributes say.
type Unrecorded struct {
	Zone   zone.Zone // without a state where only its dataset is left
	Config zone.Config
	ID     string // of the instance, from the zone's mark; empty: it has none
	Name   string // of the instance, as the zone says; may be empty

	memo  record.Memo // of one that does not run
	noted bool        // there is one
}

// Rests says that it does not run: its machine has ended, and is made again by
// what its marks say.
func (s Unrecorded) Rests() bool { return s.Zone.State != zone.Running }

// Adoptable reports whether a zone without a record is one that
// Adopt may take over: it is sledctl's, it runs, and it is no base zone.
func Adoptable(owner naming.Owner, z zone.Zone) bool {
	return z.Name != zone.Global && z.State == zone.Running && owner.Ours() && owner.Role != naming.RoleBase
}

// UnrecordedZones lists those on the sled, by the names of their zones.
func UnrecordedZones(names naming.Prefixes, view ledger.View, inv *inventory.Inventory) ([]Unrecorded, error) {
	zones, err := inv.Zones()
	if err != nil {
		return nil, err
	}
	found, err := restingZones(names, view, inv)
	if err != nil {
		return nil, err
	}
	recorded, err := zonesOf(view)
	if err != nil {
		return nil, err
	}
	for _, z := range zones {
		if z.State != zone.Running || recorded[z.Name] || !Adoptable(inv.Owner(names, z), z) {
			continue
		}
		config, _ := inv.Config(z.Name)
		if layout.IsSpare(config) {
			continue // it was booted ahead: no VM has it yet
		}
		one := Unrecorded{Zone: z, Config: config, Name: layout.AttrOf(config, layout.NameAttr)}
		if id, err := uuid.Parse(layout.AttrOf(config, naming.AttrInstance)); err == nil {
			one.ID = id.String()
		}
		found = append(found, one)
	}
	slices.SortFunc(found, func(a, b Unrecorded) int { return strings.Compare(a.Zone.Name, b.Zone.Name) })
	return found, nil
}

func zonesOf(view ledger.View) (map[string]bool, error) {
	records, err := record.All(view)
	if err != nil {
		return nil, err
	}
	zones := map[string]bool{}
	for _, r := range records {
		for _, incarnation := range r.Incarnations() {
			zones[incarnation.Zone] = true
		}
	}
	return zones, nil
}

// restingZones lists those that do not run.
func restingZones(names naming.Prefixes, view ledger.View, inv *inventory.Inventory) ([]Unrecorded, error) {
	var found []Unrecorded
	add := func(one Unrecorded, home zfs.Dataset) error {
		_, known, err := record.Load(view, one.ID)
		if err != nil || known {
			return err
		}
		one.memo, one.noted = record.ReadMemo(home)
		one.Name = cmp.Or(one.Name, one.memo.Name)
		found = append(found, one)
		return nil
	}
	zones, err := inv.Zones()
	if err != nil {
		return nil, err
	}
	for _, z := range zones {
		if z.State == zone.Running { // most do, and to look at each takes long
			continue
		}
		owner := inv.Owner(names, z)
		if !record.Resting(owner, z) {
			continue
		}
		config, _ := inv.Config(z.Name)
		home, _ := record.HomeDataset(inv, z.Path)
		if err := add(Unrecorded{Zone: z, Config: config, ID: owner.Instance.String(), Name: layout.AttrOf(config, layout.NameAttr)}, home); err != nil {
			return nil, err
		}
	}
	datasets, _ := inv.Datasets() // not asked for: what zones say is all there is
	for _, d := range datasets {
		id, ours := record.HomeOf(names, d)
		if _, zoned := inv.Zone(record.NameOfHome(d)); !ours || zoned {
			continue
		}
		if err := add(Unrecorded{Zone: zone.Zone{Name: record.NameOfHome(d), Path: d.Mountpoint}, ID: id.String()}, d); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// Has reports whether one of its VNICs has that name, or has, or had, this MAC.
func (s Unrecorded) Has(link, mac string) bool {
	return slices.ContainsFunc(s.Config.Nets, func(n zone.Net) bool { return n.Physical == link }) && link != "" ||
		mac != "" && s.noted && (s.memo.Control == mac || slices.ContainsFunc(s.memo.NICs, func(n record.NIC) bool { return n.MAC == mac }))
}

// Address is the one that its zone says that it has.
func (s Unrecorded) Address() netip.Addr {
	if s.noted {
		return s.memo.Address.Prefix.Addr()
	}
	a, err := record.ParseAddress(layout.AttrOf(s.Config, layout.AddressAttr))
	if err != nil {
		return netip.Addr{}
	}
	return a.Prefix.Addr()
}

// Writes reports whether it may write to a disk.
func (s Unrecorded) Writes(d record.Disk) bool {
	if s.noted {
		return slices.Contains(s.memo.Disks, record.Disk{Path: d.Path})
	}
	if slices.Contains(s.Config.Devices, d.Path) {
		return true
	}
	return slices.ContainsFunc(s.Config.FS, func(fs zone.FS) bool { return fs.Special == d.Path && !slices.Contains(fs.Options, "ro") })
}

// UnadoptedError is an instance whose zone exists on the sled, and that no record
// names it. Creating one that runs a second time would end it: a Propolis destroys the
// machine of the same id before it makes one (propolis, bin/propolis-server). One
// that does not run would get other MACs.
type UnadoptedError struct {
	Name, Zone string
	Rests      bool // it does not run
}

// Error names the zone.
func (e *UnadoptedError) Error() string {
	if e.Rests {
		return fmt.Sprintf("instance %q has zone %s, which is not running and not in the ledger", e.Name, e.Zone)
	}
	return fmt.Sprintf("instance %q runs in zone %s, which is not in the ledger", e.Name, e.Zone)
}

func (*UnadoptedError) Kind() fault.Kind { return fault.Refused }

// Hint says what makes it known.
func (e *UnadoptedError) Hint() string { return "to record it, run: sledctl instance adopt " + e.Zone }
