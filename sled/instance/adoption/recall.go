package adoption

import (
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/packaging"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/zfs"
)

// Defaults are what the sled gives an instance that asks for nothing else.
type Defaults struct {
	CPUs                   int
	Memory                 uint64
	GuestLink, ControlLink string
	Blueprint              layout.Blueprint
}

// Chooser gives what no instance has yet.
type Chooser interface {
	Address() (record.Address, error)
	// MAC returns the same address each time that the same operation asks for the same
	// purpose.
	MAC(purpose string) string
	// VNICNames returns names for so many guests' VNICs, and then for the control VNIC.
	VNICNames(guests int) []string
}

// Recall is the record of an unrecorded zone that does not run, by its marks: as the
// ledger had it, with an incarnation from before the boot. Of what they do not tell, as those
// of an earlier sledctl do not, the defaults are taken, and nobody starts it before
// the operator has looked: see unsure. It is pure.
func Recall(s Defaults, c Chooser, seen Inspection, name string, propolisID uuid.UUID) (record.Record, error) {
	r, err := remembered(s, c, seen, propolisID)
	if err == nil {
		err = r.Spec.Validate()
	}
	if err != nil {
		return record.Record{}, &NotAdoptableError{Zone: seen.Zone.Name, Reason: err.Error(), Rests: true}
	}
	r.Name = name
	return r, nil
}

func remembered(s Defaults, c Chooser, seen Inspection, propolisID uuid.UUID) (record.Record, error) {
	home, found := record.HomeDataset(seen.Inv, seen.Zone.Path)
	if !found {
		return record.Record{}, fmt.Errorf("no dataset can be seen on its zonepath %s", seen.Zone.Path)
	}
	if mark := home.User[naming.PropertyInstance]; mark.Source == zfs.Local && mark.Value != seen.ID {
		return record.Record{}, fmt.Errorf("it is marked as instance %s, and its dataset as %s", seen.ID, mark.Value)
	}
	pool, _, _ := strings.Cut(home.Name, "/")
	said, whole := record.ReadMemo(home)
	if !whole {
		var err error
		if said, err = gathered(s, c, seen); err != nil {
			return record.Record{}, err
		}
	}
	r := record.Record{ID: seen.ID, Wanted: record.WantedStopped, Control: said.Control, Spec: said.Spec}
	if r.Spec.Pool = pool; whole && !said.Written && !said.Secret {
		r.Wanted = record.WantedRunning
	}
	r.Incarnation = &record.Incarnation{
		PropolisID: propolisID.String(), Zone: seen.Zone.Name, Zonepath: seen.Zone.Path, Dataset: home.Name,
		Brand: seen.Zone.Brand, Guests: []record.VNIC{}, Ensured: true,
	}
	r.Incarnation.Base, r.Incarnation.BaseDataset = seen.base(home)
	names := lentTo(c, seen, len(r.Spec.NICs))
	for i, n := range r.Spec.NICs {
		r.Incarnation.Guests = append(r.Incarnation.Guests, record.VNICOf(names[i], n))
	}
	r.Incarnation.Control = record.VNIC{Name: names[len(r.Spec.NICs)], Over: s.ControlLink, MAC: r.Control}
	return r, nil
}

// gathered is what can be determined of an instance without a memo: its address and its
// disks stand in its zone's configuration, and how many NICs it has; their MACs only
// on VNICs that are there still.
func gathered(s Defaults, c Chooser, seen Inspection) (record.Memo, error) {
	m := record.Memo{Spec: record.Spec{CPUs: s.CPUs, Memory: s.Memory, Disks: []record.Disk{}, NICs: []record.NIC{}, CPUCap: record.CPUCap(max(0, seen.Config.CPUCap))}}
	var err error
	if m.Address, err = record.ParseAddress(layout.AttrOf(seen.Config, layout.AddressAttr)); err != nil {
		m.Address, err = c.Address()
	}
	if err != nil {
		return record.Memo{}, err
	}
	for _, device := range seen.Config.Devices {
		if strings.HasPrefix(device, naming.VolumeDevices) {
			m.Disks = append(m.Disks, record.Disk{Path: device})
		}
	}
	for _, fs := range seen.Config.FS {
		if fs.Dir == fs.Special && fs.Type == "lofs" && !layout.PackagingFor(s.Blueprint, packaging.Lofs).MountsAt(fs.Dir) {
			m.Disks = append(m.Disks, record.Disk{Path: fs.Special, ReadOnly: len(fs.Options) == 1 && fs.Options[0] == "ro"})
		}
	}
	nets := seen.Config.Nets
	if len(nets) == 0 {
		return record.Memo{}, errors.New("its zone has no control VNIC")
	}
	for i, n := range nets {
		l, there := seen.Inv.Link(n.Physical)
		nic := record.NIC{Over: s.GuestLink, MAC: c.MAC(fmt.Sprintf("guest %d", i))}
		if there && l.Class == vnicClass {
			nic = record.NIC{Over: l.Over, MAC: l.MAC, VLAN: l.VLAN}
		}
		if i == len(nets)-1 {
			m.Control = nic.MAC
			break
		}
		m.NICs = append(m.NICs, nic)
	}
	return m, nil
}

// lentTo are the names of the VNICs of a zone, guests first: those in its
// configuration, or where that does not exist or has others, the next free ones.
func lentTo(c Chooser, seen Inspection, guests int) []string {
	var names []string
	if len(seen.Config.Nets) == guests+1 {
		for _, n := range seen.Config.Nets {
			names = append(names, n.Physical)
		}
		return names
	}
	return c.VNICNames(guests)
}

// UnsureError is an instance that was adopted with less than what it was.
type UnsureError struct {
	Name string
	Lack string
	Type string // what starts it
}

// Error says what was not told.
func (e *UnsureError) Error() string {
	return fmt.Sprintf("instance %q is taken as stopped: %s; `%s` starts it", e.Name, e.Lack, e.Type)
}

// Kind is that of what is left to do.
func (*UnsureError) Kind() fault.Kind { return fault.Refused }

// Unsure says what the marks of an unrecorded zone do not tell, and what starts it with
// that.
func Unsure(one Unrecorded, r record.Record) *UnsureError {
	ensure := "sledctl instance ensure " + r.Name
	switch {
	case one.noted && one.memo.Secret && !one.memo.Written:
		return &UnsureError{Name: r.Name, Lack: "no mark has its user-data or its network configuration", Type: ensure + " --cloud-init FILE --network-config FILE"}
	case one.noted:
		return &UnsureError{Name: r.Name, Lack: "its machine was written down whole, and no mark has that", Type: ensure + " --spec FILE"}
	}
	for range r.Spec.NICs {
		ensure += " --nic over=LINK,mac=MAC"
	}
	return &UnsureError{
		Name: r.Name, Lack: "its marks do not tell its CPUs, its memory and its MACs",
		Type: ensure + " --cpus N --memory SIZE",
	}
}
