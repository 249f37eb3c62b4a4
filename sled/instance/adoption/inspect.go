package adoption

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/ipadm"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/illumos/smf"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance/firstboot"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// Inspection is all that can be seen of an unrecorded zone: what a record is made from.
type Inspection struct {
	Unrecorded
	Inv      *inventory.Inventory
	Boot     string
	Services map[string]string
	Control  ipadm.Address // on which its Propolis answers
	Routes   []ipadm.Route
	Machine  propolis.Description
	Key      []byte   // of the digests of its secrets, if it has any
	Kept     []string // the files that there are of its secrets
}

// NotAdoptableError is an unrecorded zone that cannot be adopted.
type NotAdoptableError struct {
	Zone, Reason string
	Rests        bool // it does not run
}

// Error says why.
func (e *NotAdoptableError) Error() string {
	return fmt.Sprintf("zone %s cannot be adopted: %s", e.Zone, e.Reason)
}

func (*NotAdoptableError) Kind() fault.Kind { return fault.Conflict }

// Hint says how to remove it.
func (e *NotAdoptableError) Hint() string {
	if e.Rests {
		return "to remove it, run: sledctl zone delete " + e.Zone
	}
	return "to inspect it, run: sledctl zone exec " + e.Zone + " -- svcs -x; to remove it, run: sledctl zone delete " + e.Zone
}

// Inspect looks at an unrecorded zone from all sides.
func Inspect(ctx context.Context, b layout.Blueprint, h host.Host, found Unrecorded, boot string) (Inspection, error) {
	seen := Inspection{Unrecorded: found, Boot: boot}
	seen.Inv = inventory.Look(ctx, h, inventory.Want{
		Parts: []inventory.Part{inventory.Zones, inventory.Configs, inventory.Links, inventory.Pools, inventory.Datasets},
		User:  []string{naming.PropertyInstance, naming.PropertySpec},
	})
	err := seen.Inv.Know(inventory.Zones, inventory.Configs, inventory.Links, inventory.Datasets)
	if err != nil || found.Rests() {
		return seen, err
	}
	if err == nil {
		seen.Services, err = smf.States(ctx, h, found.Zone.Name)
	}
	var addresses []ipadm.Address
	if err == nil {
		addresses, err = ipadm.Addresses(ctx, h, found.Zone.Name)
	}
	if err == nil {
		seen.Routes, err = ipadm.Routes(ctx, h, found.Zone.Name)
	}
	if err != nil {
		return Inspection{}, err
	}
	return seen, seen.meet(ctx, h, addresses, b.Propolis.Port)
}

// meet finds the address on which its Propolis answers, and asks for its
// machine.
//
// Guess agent-zone-port: a zone of today's sled agent: Propolis listens on the port of
// `propolis.port`.
// Check: `sledctl instance adopt ZONE` on such a sled, its agent disabled
func (s *Inspection) meet(ctx context.Context, h host.Host, addresses []ipadm.Address, port uint16) error {
	silent := errors.New("no address of it is usable")
	for _, a := range addresses {
		ip := a.Address.Addr()
		if !a.Address.IsValid() || a.State != ipadm.OK || ip.IsLinkLocalUnicast() || strings.HasPrefix(a.Object, "lo0/") {
			continue
		}
		d, err := describe(ctx, h, netip.AddrPortFrom(ip, port))
		switch {
		case errors.Is(err, propolis.ErrNoInstance):
			return &NotAdoptableError{Zone: s.Zone.Name, Reason: "its Propolis has no machine"}
		case err != nil:
			silent = err
			continue
		case d.Spec == nil:
			return &NotAdoptableError{Zone: s.Zone.Name, Reason: "its machine waits for a migration"}
		}
		s.Control, s.Machine = a, d
		return nil
	}
	return &NotAdoptableError{Zone: s.Zone.Name, Reason: "its Propolis does not answer: " + silent.Error()}
}

func describe(ctx context.Context, h host.Host, at netip.AddrPort) (propolis.Description, error) {
	ctx, release := context.WithTimeout(ctx, layout.AskTimeout)
	defer release()
	return propolis.Client{Host: h, Target: propolis.Target{Name: at.String(), Address: at}}.Spec(ctx)
}

// InspectedRecord is what the ledger would say, had it seen the zone be made. What the
// zone's attributes say counts if it agrees with what exists. It is pure.
func InspectedRecord(b layout.Blueprint, seen Inspection, name string, propolisID uuid.UUID) (record.Record, error) {
	r, err := inspectRun(b, seen, propolisID)
	if err == nil {
		err = r.Spec.Validate()
	}
	if err != nil {
		return record.Record{}, &NotAdoptableError{Zone: seen.Zone.Name, Reason: err.Error()}
	}
	r.Name = name
	if SpecDifferences(b.Underlay, seen, r) != "" {
		r = adoptableAs(b.Underlay, seen, r)
	}
	r.Incarnation.Foreign = len(zone.Compare(layout.ZoneConfig(b, r), seen.Config)) > 0
	return r, nil
}

// adoptableAs keeps the machine of a record as it is, where sledctl would build
// another from disks and NICs: its guest knows it so. What CPUID set it was asked
// for cannot be seen, as a server that was asked for none fills one in.
//
// Guess cpuid-request-is-not-seen: what a machine's CPUID set was asked to be cannot be seen: an
// adopted one that is built again gets the host's.
// Check: `sledctl instance adopt` of a machine that was given one
func adoptableAs(underlay netip.Prefix, seen Inspection, r record.Record) record.Record {
	machine := seen.Machine.Spec.Clone()
	machine.Board.CPUID = nil
	as := r
	as.Spec = r.Spec.WithMachine(spec.Document{Spec: machine})
	if _, err := layout.RequestOf(underlay, as); err != nil {
		return r
	}
	return as
}

// inspectRun is the record but for what it is called.
func inspectRun(b layout.Blueprint, seen Inspection, propolisID uuid.UUID) (record.Record, error) {
	id, err := seen.id()
	if err != nil {
		return record.Record{}, err
	}
	home, found := seen.home()
	if !found {
		return record.Record{}, fmt.Errorf("no dataset is mounted on its zonepath %s", seen.Zone.Path)
	}
	control, there := seen.Inv.Link(linkOf(seen.Control.Object))
	if !there || control.Class != vnicClass {
		return record.Record{}, fmt.Errorf("its Propolis answers on %s, which is no VNIC", seen.Control.Object)
	}
	pool, _, _ := strings.Cut(home.Name, "/")
	board := seen.Machine.Spec.Board
	r := record.Record{ID: id, Wanted: record.WantedRunning, Control: control.MAC}
	r.Spec = record.Spec{
		CPUs: int(board.CPUs), Memory: board.MemoryMiB << 20, Pool: pool, Disks: []record.Disk{}, NICs: []record.NIC{},
		Address: observedAddress(b, seen), CPUCap: record.CPUCap(max(0, seen.Config.CPUCap)),
	}
	memo, _ := record.ReadMemo(home)
	r.Spec.StartOrder = memo.StartOrder
	r.Incarnation = &record.Incarnation{
		PropolisID: propolisID.String(), Zone: seen.Zone.Name, Zonepath: seen.Zone.Path, Dataset: home.Name, Brand: seen.Zone.Brand,
		Control: vnicOf(control), Guests: []record.VNIC{}, Boot: seen.Boot, Ensured: true,
	}
	r.Incarnation.Service = observedService(b, *r.Incarnation, seen.Services)
	r.Incarnation.Base, r.Incarnation.BaseDataset = seen.base(home)
	if layout.AddressObject(b, r) != seen.Control.Object {
		r.Incarnation.Object = seen.Control.Object
	}
	return r, seen.devices(&r)
}

// id is that of the machine, with which all that is marked must agree.
func (s Inspection) id() (string, error) {
	id, err := uuid.Parse(s.Machine.Properties.ID)
	if err != nil {
		return "", fmt.Errorf("its machine has the id %q", s.Machine.Properties.ID)
	}
	home, _ := s.home()
	mark := home.User[naming.PropertyInstance]
	if mark.Source != zfs.Local {
		mark.Value = ""
	}
	for _, said := range []string{s.ID, mark.Value} {
		if said != "" && said != id.String() {
			return "", fmt.Errorf("it is marked as instance %s, and its machine is %s", said, id)
		}
	}
	return id.String(), nil
}

// home is the dataset of the zonepath.
func (s Inspection) home() (zfs.Dataset, bool) {
	datasets, _ := s.Inv.Datasets()
	i := slices.IndexFunc(datasets, func(d zfs.Dataset) bool {
		return d.Type == zfs.TypeFilesystem && d.Mountpoint == s.Zone.Path && d.Mounted
	})
	if i < 0 {
		return zfs.Dataset{}, false
	}
	return datasets[i], true
}

// base is the zone that it was cloned from, and that zone's dataset: the one in
// which the origin of what lies in it lies. A zone that was installed has none.
func (s Inspection) base(home zfs.Dataset) (zoneName, dataset string) {
	zones, _ := s.Inv.Zones()
	for _, d := range s.Inv.Below(home.Name) {
		origin, _, cloned := strings.Cut(d.Origin, "@")
		for at := origin; cloned && strings.Contains(at, "/"); at = path.Dir(at) {
			above, _ := s.Inv.Dataset(at)
			i := slices.IndexFunc(zones, func(z zone.Zone) bool {
				return z.Path == above.Mountpoint && z.Name != s.Zone.Name && z.Name != zone.Global
			})
			if above.Mountpoint != "" && i >= 0 {
				return zones[i].Name, at
			}
		}
	}
	return "", ""
}

// vnicClass is the class of links that sledctl can make again. The ports of
// Oxide's own switch are of another, for example.
const vnicClass = "vnic"

func vnicOf(l vnic.Link) record.VNIC {
	return record.VNIC{Name: l.Name, Over: l.Over, MAC: l.MAC, VLAN: l.VLAN}
}

// devices reads disks and NICs from the machine, in the order of their places
// on the PCI bus, which is that in which they were asked for.
func (s Inspection) devices(r *record.Record) error {
	components := s.Machine.Spec.Components
	type placed struct {
		at      spec.PCIPath
		backend string
		disk    bool
	}
	var devices []placed
	for _, key := range components.Keys() {
		switch d := components[key].(type) {
		case spec.NVMeDisk:
			devices = append(devices, placed{d.PCI, d.Backend, true})
		case spec.VirtioDisk:
			devices = append(devices, placed{d.PCI, d.Backend, true})
		case spec.VirtioNIC:
			devices = append(devices, placed{d.PCI, d.Backend, false})
		}
	}
	slices.SortFunc(devices, func(a, b placed) int {
		return cmp.Or(cmp.Compare(a.at.Bus, b.at.Bus), cmp.Compare(a.at.Device, b.at.Device), cmp.Compare(a.at.Function, b.at.Function))
	})
	for _, d := range devices {
		switch b := components[d.backend].(type) {
		case spec.FileStorage:
			disk, err := record.Disk{Path: b.Path, ReadOnly: b.ReadOnly}.Normal()
			if err != nil {
				return err
			}
			r.Spec.Disks = append(r.Spec.Disks, disk)
		case spec.VirtioNetwork:
			l, there := s.Inv.Link(b.VNIC)
			n := s.limited(record.NIC{Over: l.Over, MAC: l.MAC, VLAN: l.VLAN})
			if !there || l.Class != vnicClass && !(inventory.IsMisc(l) && n.OPTE) { // nothing but the memo tells all of a port
				return fmt.Errorf("its NIC is %s, which is no VNIC of the sled", b.VNIC)
			}
			r.Incarnation.Guests = append(r.Incarnation.Guests, record.VNICOf(l.Name, n))
			r.Spec.NICs = append(r.Spec.NICs, n)
		case spec.BlobStorage:
			told, err := firstboot.ReadBack(b.Base64)
			if d.backend != spec.KeyCloudInit || err != nil {
				return fmt.Errorf("its %s is a %s, which sledctl cannot make again", d.backend, b.Type())
			}
			r.Spec.CloudInit = told
		case nil:
			return fmt.Errorf("its machine has no component %s", d.backend)
		default:
			return fmt.Errorf("its %s is a %s, which sledctl cannot make again", d.backend, b.Type())
		}
	}
	return nil
}

// limited is a NIC with the limits that the memo has of it, or with its place in a VPC.
func (s Inspection) limited(n record.NIC) record.NIC {
	home, _ := s.home()
	memo, _ := record.ReadMemo(home)
	for _, was := range memo.NICs {
		if was.MAC == n.MAC {
			n.AllowIP, n.MaxBW, n.OPTE, n.Port = was.AllowIP, was.MaxBW, was.OPTE, was.Port
		}
	}
	return n
}

func linkOf(object string) string {
	link, _, _ := strings.Cut(object, "/")
	return link
}

// observedAddress is how its control interface got its address. Whether the default
// route was asked for, or is the underlay's, only the zone can say.
func observedAddress(b layout.Blueprint, seen Inspection) record.Address {
	if seen.Control.Type != ipadm.Static {
		return record.Address{Mode: seen.Control.Type}
	}
	a := record.Address{Mode: record.Static, Prefix: seen.Control.Address}
	said, err := record.ParseAddress(layout.AttrOf(seen.Config, layout.AddressAttr))
	if err == nil && said.Prefix == a.Prefix {
		return said
	}
	for _, route := range seen.Routes {
		gateway, err := netip.ParseAddr(route.Gateway)
		if err == nil && route.Destination == "default" && a.Prefix.Contains(gateway) && gateway != layout.GatewayOf(b, a) {
			a.Gateway = gateway
		}
	}
	return a
}

// observedService is what Propolis is called in its zone; empty: as in one that is
// made this way here.
//
// Guess agent-zone-fmri: a zone of today's sled agent: Propolis is
// svc:/system/illumos/propolis-server:default.
// Check: `sledctl instance adopt ZONE` on such a sled, its agent disabled
// State: settled by omicron sled-agent/src/instance.rs:195
func observedService(b layout.Blueprint, incarnation record.Incarnation, services map[string]string) string {
	if services[layout.PackagingOf(b, incarnation).Service] == smf.Online {
		return ""
	}
	for _, fmri := range []string{b.Propolis.FMRI, packaging.Service} {
		if services[fmri] == smf.Online {
			return fmri
		}
	}
	return record.ByHand
}

// SpecDifferences says in what the machine is another than sledctl would have built.
func SpecDifferences(underlay netip.Prefix, seen Inspection, r record.Record) string {
	if r.Incarnation == nil || seen.Machine.Spec == nil {
		return ""
	}
	built, err := layout.RequestOf(underlay, r)
	if err != nil {
		return err.Error()
	}
	made, _ := built.Init.Spec.Seal(seen.Key)
	has, _ := seen.Machine.Spec.Seal(seen.Key)
	all := spec.Compare(made, has)
	var said []string
	for _, d := range all[:min(len(all), 3)] {
		said = append(said, d.Path)
	}
	if more := len(all) - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, ", ")
}
