package instance

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/engine/inventory"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sled/instance/adoption"
	"github.com/sledctl/sledctl/sled/instance/layout"
	"github.com/sledctl/sledctl/sled/instance/ports"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/vnic"
	"github.com/sledctl/sledctl/zfs"
	"github.com/sledctl/sledctl/zone"
)

// chooser picks names, numbers and addresses. It runs under the ledger's
// append lock, so that one process at a time chooses, and sees the host, the
// records and the open intents together. What it draws derives from the
// intent's id: the same intent always chooses the same.
type chooser struct {
	Settings
	view    ledger.View
	inv     *inventory.Inventory
	intent  string
	self    string           // id of the instance that is chosen for
	taken   map[string]bool  // what open intents make, by kind and name
	drawn   map[string]bool  // MAC addresses that the instance itself is to have
	leaving map[string]bool  // what they remove
	packing layout.Packaging // of a new life
	boot    string           // which boot of the sled this is; empty: no spare that runs is one

	// unrecorded are machines that the ledger does not know: what they have is
	// as taken as what is recorded.
	unrecorded []adoption.Unrecorded
}

func newChooser(s Settings, view ledger.View, inv *inventory.Inventory, intent, self string) chooser {
	c := chooser{Settings: s, view: view, inv: inv, intent: intent, self: self, taken: map[string]bool{}, drawn: map[string]bool{}, leaving: map[string]bool{}}
	for _, open := range operation.Open(view) {
		if open.Subject == record.Subject(self) {
			continue // a dead operation on the same instance left it: it may be taken
		}
		for _, o := range open.Makes {
			c.taken[o.Kind+" "+o.Name] = true
			c.taken["mac "+o.Identity] = true
		}
		for _, o := range open.Removes {
			c.leaving[o.Kind+" "+o.Name] = true
		}
	}
	return c
}

func (c chooser) uuid(purpose string) uuid.UUID {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(c.intent+" "+purpose))
}

// number finds the lowest n for which every name that it would give is free.
func (c chooser) number(names func(n int) []string) int {
	for n := 0; ; n++ {
		if !slices.ContainsFunc(names(n), c.linkTaken) {
			return n
		}
	}
}

// linkTaken asks the ledger too: what another process has made since this one
// looked at the host is missing from its listings.
func (c chooser) linkTaken(name string) bool {
	_, there := c.inv.Link(name)
	_, held := c.view.Get(naming.KeyHeldVNIC + name)
	user := record.Owner(c.view, naming.KeyVNIC+name)
	lent := slices.ContainsFunc(c.unrecorded, func(one adoption.Unrecorded) bool { return one.Rests() && one.ID != c.self && one.Has(name, "") })
	return there || held || lent || c.taken["vnic "+name] || c.taken["port "+name] || user != "" && user != c.self
}

// MAC draws an address that no link and no instance has, and that it has not drawn before.
func (c chooser) MAC(purpose string) string {
	for try := 0; ; try++ {
		mac := operation.DeriveMAC(c.intent, fmt.Sprintf("%s %d", purpose, try))
		if !c.drawn[mac] && c.macTaken(mac, "") == nil {
			c.drawn[mac] = true
			return mac
		}
	}
}

// MACTakenError is a MAC address in use.
type MACTakenError struct{ MAC, By string }

// Error names who has it.
func (e *MACTakenError) Error() string { return fmt.Sprintf("MAC %s is in use by %s", e.MAC, e.By) }

func (*MACTakenError) Kind() fault.Kind { return fault.Conflict }

// macTaken says who has a MAC, other than the instance itself.
func (c chooser) macTaken(mac, self string) error {
	if id := record.Owner(c.view, naming.KeyNIC+mac); id != "" {
		if id == self {
			return nil
		}
		return &MACTakenError{MAC: mac, By: c.called(id)}
	}
	links, _ := c.inv.Links()
	if i := slices.IndexFunc(links, func(l vnic.Link) bool { return l.MAC == mac }); i >= 0 {
		return &MACTakenError{MAC: mac, By: "link " + links[i].Name}
	}
	if i := slices.IndexFunc(c.unrecorded, func(one adoption.Unrecorded) bool { return one.ID != c.self && one.Has("", mac) }); i >= 0 {
		return &MACTakenError{MAC: mac, By: "zone " + c.unrecorded[i].Zone.Name}
	}
	if c.taken["mac "+mac] {
		return &MACTakenError{MAC: mac, By: "a running operation"}
	}
	return nil
}

// Address picks the lowest free address of the underlay, or DHCP where there
// is none.
func (c chooser) Address() (record.Address, error) {
	if !c.Underlay.IsValid() {
		return record.Address{Mode: record.DHCP}, nil
	}
	network := c.Underlay.Masked()
	for ip := network.Addr().Next(); c.usable(ip); ip = ip.Next() {
		if c.addressTaken(ip, "") == nil {
			return record.Address{Mode: record.Static, Prefix: netip.PrefixFrom(ip, network.Bits())}, nil
		}
	}
	return record.Address{}, fmt.Errorf("every address of the underlay %s is taken", network)
}

// usable reports whether an address of the underlay can be a host's: it is neither
// the network's own nor the broadcast address.
func (c chooser) usable(ip netip.Addr) bool {
	network := c.Underlay.Masked()
	return network.Contains(ip) && ip != network.Addr() && (ip.Is6() || network.Contains(ip.Next()))
}

// AddressTakenError is an address that someone else has.
type AddressTakenError struct {
	Address netip.Addr
	By      string
}

// Error names who has it.
func (e *AddressTakenError) Error() string {
	return fmt.Sprintf("address %s is taken by %s", e.Address, e.By)
}

func (*AddressTakenError) Kind() fault.Kind { return fault.Conflict }

func (c chooser) addressTaken(ip netip.Addr, self string) error {
	if slices.Contains(c.Reserved, ip) || ip == c.Gateway {
		return &AddressTakenError{Address: ip, By: "the sled itself"}
	}
	if id := record.AddressOwner(c.view, ip); id != "" && id != self {
		return &AddressTakenError{Address: ip, By: c.called(id)}
	}
	for _, one := range c.unrecorded {
		if one.ID != c.self && one.Address() == ip {
			return &AddressTakenError{Address: ip, By: "zone " + one.Zone.Name}
		}
	}
	return nil
}

// DiskTakenError is a disk that another instance writes to.
type DiskTakenError struct{ Path, By string }

// Error names who has it.
func (e *DiskTakenError) Error() string { return fmt.Sprintf("disk %s is in use by %s", e.Path, e.By) }

func (*DiskTakenError) Kind() fault.Kind { return fault.Conflict }

// called is how an operator knows an instance.
func (c chooser) called(id string) string { return called(c.view, id) }

func called(view ledger.View, id string) string {
	if r, known, err := record.Load(view, id); err == nil && known {
		return fmt.Sprintf("instance %q", r.Name)
	}
	return "instance " + id
}

// checkAddress refuses an address that is outside the underlay or taken.
func (c chooser) checkAddress(a record.Address, self string) error {
	if a.Mode != record.Static {
		return nil
	}
	if c.Underlay.IsValid() && !(c.usable(a.Prefix.Addr()) && a.Prefix.Bits() == c.Underlay.Bits()) {
		return &record.InputError{
			Field: "address", Value: a.Prefix.String(),
			Want: fmt.Sprintf("a host's address within the underlay %s, with its prefix length", c.Underlay.Masked()),
		}
	}
	return c.addressTaken(a.Prefix.Addr(), self)
}

// zonePools lists the pools that zones may be put on: those with a mounted
// zone parent, in the configured order or by name.
func (c chooser) zonePools() ([]zfs.Pool, error) {
	pools, err := c.inv.Pools()
	if err != nil {
		return nil, err
	}
	var fit []zfs.Pool
	for _, p := range pools {
		at, ok := naming.ZoneParent(p.Name)
		parent, there := c.inv.Dataset(at.Dataset)
		if ok && there && parent.Mounted && (c.Pools == nil || slices.Contains(c.Pools, p.Name)) {
			fit = append(fit, p)
		}
	}
	slices.SortFunc(fit, func(a, b zfs.Pool) int {
		return cmp.Or(cmp.Compare(slices.Index(c.Pools, a.Name), slices.Index(c.Pools, b.Name)), strings.Compare(a.Name, b.Name))
	})
	return fit, nil
}

// pool picks a pool for a zone: one that is healthy and has room, of these the
// one with the fewest zones on it and coming to it, of these the one with the
// most room. What it picked stands in the instance's record and is kept.
func (c chooser) pool() (string, error) {
	pools, err := c.zonePools()
	if err != nil {
		return "", err
	}
	if len(pools) == 0 {
		return "", ErrNoPool
	}
	count := func(p zfs.Pool) int {
		parent, _ := naming.ZoneParent(p.Name)
		n := 0
		zones, _ := c.inv.Zones()
		for _, z := range zones {
			if strings.HasPrefix(z.Path, parent.Mountpoint+"/") {
				n++
			}
		}
		for name := range c.taken {
			if strings.HasPrefix(name, "dataset "+parent.Dataset+"/") {
				n++
			}
		}
		return n
	}
	best := slices.MinFunc(pools, func(a, b zfs.Pool) int {
		return cmp.Or(cmp.Compare(unfit(a), unfit(b)), cmp.Compare(c.lacksRoom(a), c.lacksRoom(b)), cmp.Compare(count(a), count(b)), cmp.Compare(room(b), room(a)))
	})
	return best.Name, nil
}

// checkCrucible refuses a volume that another instance writes to.
func (c chooser) checkCrucible(id string, disks []record.CrucibleDisk) error {
	for _, d := range disks {
		if other := record.CrucibleOwner(c.view, d); other != "" && other != id && !d.ReadOnly {
			return &DiskTakenError{Path: "crucible " + d.ID, By: c.called(other)}
		}
	}
	return nil
}

// resolve fills in what a spec leaves open and refuses what cannot be.
func (c chooser) resolve(id string, s record.Spec) (record.Spec, error) {
	s.CPUs, s.Memory = cmp.Or(s.CPUs, c.CPUs), cmp.Or(s.Memory, c.Memory)
	s.NICs, s.Disks = slices.Clone(s.NICs), slices.Clone(s.Disks)
	for i := range s.Disks {
		var err error
		if s.Disks[i], err = s.Disks[i].Normal(); err != nil {
			return record.Spec{}, err
		}
		other, err := record.DiskOwner(c.view, s.Disks[i])
		switch {
		case err != nil:
			return record.Spec{}, err
		case other != "" && other != id:
			return record.Spec{}, &DiskTakenError{Path: s.Disks[i].Path, By: c.called(other)}
		}
		for _, one := range c.unrecorded {
			if one.Writes(s.Disks[i]) {
				return record.Spec{}, &DiskTakenError{Path: s.Disks[i].Path, By: "zone " + one.Zone.Name}
			}
		}
	}
	if err := c.checkCrucible(id, s.Crucible); err != nil {
		return record.Spec{}, err
	}
	for i := range s.NICs {
		n, err := s.NICs[i].Normal()
		if err != nil {
			return record.Spec{}, err
		}
		if !n.OPTE {
			n.Over = cmp.Or(n.Over, c.GuestLink)
		}
		c.drawn[n.MAC] = true
		s.NICs[i] = n
	}
	for i, n := range s.NICs {
		if n.MAC == "" {
			s.NICs[i].MAC = c.MAC(fmt.Sprintf("guest %d", i))
		}
		if err := c.checkNIC(id, s.NICs[i]); err != nil {
			return record.Spec{}, err
		}
	}
	if err := s.Validate(); err != nil {
		return record.Spec{}, err
	}
	var err error
	if s.Address.Mode == "" {
		if s.Address, err = c.Address(); err != nil {
			return record.Spec{}, err
		}
	}
	if err := c.checkAddress(s.Address, id); err != nil {
		return record.Spec{}, err
	}
	if s.Pool == "" {
		s.Pool, err = c.pool()
	} else {
		err = c.checkPool(s.Pool)
	}
	return s, err
}

func (c chooser) checkNIC(id string, n record.NIC) error {
	if n.OPTE {
		if !c.OPTE.Address.IsValid() {
			return &ports.NoUnderlayError{}
		}
		return c.macTaken(n.MAC, id)
	}
	link, ok := c.inv.Link(n.Over)
	if !ok {
		return &record.InputError{Field: "nic over", Value: n.Over, Want: "a link of this sled: " + c.linkNames(), Absent: true}
	}
	if link.Class == "vnic" {
		return &record.InputError{Field: "nic over", Value: n.Over, Want: "a link that is not itself a VNIC: " + c.linkNames()}
	}
	return c.macTaken(n.MAC, id)
}

func (c chooser) linkNames() string {
	links, _ := c.inv.Links()
	var names []string
	for _, l := range links {
		if l.Class != "vnic" {
			names = append(names, l.Name)
		}
	}
	return strings.Join(names, ", ")
}

func (c chooser) checkPool(name string) error {
	pools, err := c.zonePools()
	if err != nil {
		return err
	}
	var names []string
	for _, p := range pools {
		if p.Name == name {
			return nil
		}
		names = append(names, p.Name)
	}
	if len(names) == 0 {
		return ErrNoPool // whatever was asked for
	}
	return &record.InputError{Field: "pool", Value: name, Want: "a pool that is prepared for zones: " + strings.Join(names, ", "), Absent: true}
}

// run chooses all names of a new life; its id is drawn, unless it is chosen.
func (c chooser) incarnation(r record.Record, chosen, boot string) (*record.Incarnation, error) {
	if err := suits(c.packing, c.Settings, c.inv, r.Spec.Address); err != nil {
		return nil, err
	}
	id := c.uuid("propolis")
	if chosen != "" {
		id = uuid.MustParse(chosen)
	}
	incarnation := &record.Incarnation{PropolisID: id.String(), Brand: c.packing.Brand, Boot: boot, Guests: []record.VNIC{}}
	if len(c.packing.Images) == 0 {
		base, ok := c.Base(c.view, r.Spec.Pool)
		if !ok || !base.Planned && !c.valid(base) {
			return nil, &NoBaseError{Pool: r.Spec.Pool}
		}
		incarnation.Base, incarnation.BaseDataset, incarnation.Brand = base.Zone, base.Dataset, base.Brand
	}
	incarnation.Zone = c.making().ZoneName(id)
	at, _ := naming.Zone(r.Spec.Pool, incarnation.Zone)
	incarnation.Zonepath, incarnation.Dataset = at.Mountpoint, at.Dataset
	names := c.VNICNames(len(r.Spec.NICs))
	incarnation.Control = record.VNIC{Name: names[len(r.Spec.NICs)], Over: c.ControlLink, MAC: r.Control}
	for i, nic := range r.Spec.NICs {
		incarnation.Guests = append(incarnation.Guests, record.VNICOf(names[i], nic))
	}
	return incarnation, nil
}

// making are the prefixes of what is made.
func (c chooser) making() naming.Prefixes {
	if c.Probe {
		return c.Names.Probe()
	}
	return c.Names
}

// VNICNames are free names for an incarnation's VNICs, guests first.
func (c chooser) VNICNames(guests int) []string {
	n := c.number(func(n int) []string { return []string{c.making().ControlVNIC(n)} })
	from := func(n int) []string {
		var names []string
		for i := range guests {
			names = append(names, c.Names.GuestVNIC(n+i))
		}
		return names
	}
	return append(from(c.number(from)), c.making().ControlVNIC(n))
}

// valid reports whether a base is there as it was recorded. One that is not is not
// trusted.
func (c chooser) valid(b Base) bool {
	z, there := c.inv.Zone(b.Zone)
	d, exists := c.inv.Dataset(b.Dataset)
	return there && exists && !c.leaving["zone "+b.Zone] && z.State == zone.Installed &&
		z.UUID == b.UUID && d.User[naming.PropertyBase].Value == b.Mark
}

// NoBaseError is a pool without a valid base zone: it needs base ensure.
type NoBaseError struct{ Pool string }

// Error names the pool.
func (e *NoBaseError) Error() string { return fmt.Sprintf("pool %s has no base zone yet", e.Pool) }

func (*NoBaseError) Kind() fault.Kind { return fault.Refused }
