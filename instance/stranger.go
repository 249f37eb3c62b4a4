package instance

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/inventory"
	"github.com/sledctl/sledctl/ledger"
	"github.com/sledctl/sledctl/sled"
	"github.com/sledctl/sledctl/zone"
)

// A stranger is a zone of ours that runs and that no record names: the ledger
// was lost, or another tool has made it. Whoever chooses addresses and disks
// takes it into account, and Adopt makes a record of it.

// Stranger is such a zone, with what it says of itself.
type Stranger struct {
	Zone   zone.Zone
	Config zone.Config
	ID     string // of the instance, from the zone's mark; empty: it has none
	Name   string // of the instance, as the zone says; may be empty
}

// Adoptable says whether a zone of which the ledger knows nothing is one that
// Adopt may take over: it is ours, it runs, and it is no base zone.
func Adoptable(claim sled.Claim, z zone.Zone) bool {
	return z.Name != zone.Global && z.State == zone.Running && claim.Ours() && claim.Role != sled.RoleBase
}

func attrsOf(c zone.Config) map[string]string {
	all := make(map[string]string, len(c.Attrs))
	for _, a := range c.Attrs {
		all[a.Name] = a.Value
	}
	return all
}

// strangers lists those on the sled, by the names of their zones. The records
// of the others are asked for one by one: most zones say whose they are.
func (s Settings) strangers(view ledger.View, inv *inventory.Inventory) ([]Stranger, error) {
	zones, err := inv.Zones()
	if err != nil {
		return nil, err
	}
	var found []Stranger
	var recorded map[string]bool // zones; nil: not asked for yet
	for _, z := range zones {
		if z.State != zone.Running || !Adoptable(inv.Whose(s.Names, z), z) {
			continue
		}
		config, _ := inv.Config(z.Name)
		attrs := attrsOf(config)
		one := Stranger{Zone: z, Config: config, Name: attrs[nameAttr]}
		if id, err := uuid.Parse(attrs[sled.AttrInstance]); err == nil {
			one.ID = id.String()
			r, known, err := Load(view, one.ID)
			if err != nil {
				return nil, err
			}
			if known && r.has(z.Name) {
				continue
			}
		}
		if recorded == nil {
			if recorded, err = zonesOf(view); err != nil {
				return nil, err
			}
		}
		if !recorded[z.Name] {
			found = append(found, one)
		}
	}
	slices.SortFunc(found, func(a, b Stranger) int { return strings.Compare(a.Zone.Name, b.Zone.Name) })
	return found, nil
}

func (r Record) has(zoneName string) bool {
	return slices.ContainsFunc(r.Runs(), func(run Run) bool { return run.Zone == zoneName })
}

func zonesOf(view ledger.View) (map[string]bool, error) {
	records, err := All(view)
	if err != nil {
		return nil, err
	}
	zones := map[string]bool{}
	for _, r := range records {
		for _, run := range r.Runs() {
			zones[run.Zone] = true
		}
	}
	return zones, nil
}

// address is the one that its zone says that it has.
func (s Stranger) address() netip.Addr {
	a, err := ParseAddress(attrsOf(s.Config)[addressAttr])
	if err != nil {
		return netip.Addr{}
	}
	return a.Prefix.Addr()
}

// writes says whether it may write to a disk.
func (s Stranger) writes(d Disk) bool {
	if slices.Contains(s.Config.Devices, d.Path) {
		return true
	}
	return slices.ContainsFunc(s.Config.FS, func(fs zone.FS) bool { return fs.Special == d.Path && !slices.Contains(fs.Options, "ro") })
}

// UnadoptedError is an instance that runs in a zone of which the ledger knows
// nothing. To make it once more would end it: a Propolis destroys the machine
// of the same id before it makes one (propolis, bin/propolis-server).
type UnadoptedError struct{ Name, Zone string }

// Error names the zone.
func (e *UnadoptedError) Error() string {
	return fmt.Sprintf("instance %q runs in zone %s, of which the ledger does not know", e.Name, e.Zone)
}

func (*UnadoptedError) Kind() fault.Kind { return fault.Refused }

// Hint says what makes it known.
func (e *UnadoptedError) Hint() string { return "sledctl instance adopt " + e.Zone + " takes it over" }
