package world

import (
	"slices"
	"strconv"
	"strings"
)

// LinkSetting is a property of a link and the values that it is set to.
type LinkSetting struct {
	Name   string
	Values []string
}

func (s LinkSetting) joined() string { return strings.Join(s.Values, ",") }

// LinkProperty describes a property of links as dladm(8) show-linkprop does.
// The real table (prop_table in usr/src/lib/libdladm/common/linkprop.c) is
// longer: this one has what every class of link here shows.
type LinkProperty struct {
	Name     string
	ReadOnly bool
	Default  string
	Possible []string // the only values; nil: anything that check takes
	check    func(tx *Tx, l *Link, s LinkSetting) error
}

// LinkProperties is the table, in the order in which they are listed.
func LinkProperties() []LinkProperty {
	return []LinkProperty{
		{Name: "autopush"},
		{Name: "zone", check: (*Tx).checkZoneSetting},
		{Name: "state", ReadOnly: true, Default: "up", Possible: []string{"up", "down"}},
		{Name: "mtu", check: (*Tx).checkMTU},
		{Name: "maxbw"},
		{Name: "cpus"},
		{Name: "pool"},
		{Name: "priority", Default: "high", Possible: []string{"low", "medium", "high"}},
		{Name: "tagmode", Default: "vlanonly", Possible: []string{"normal", "vlanonly"}},
		{Name: "default_tag", Default: "1", check: checkTag},
		{Name: "protection", Possible: []string{"mac-nospoof", "restricted", "ip-nospoof", "dhcp-nospoof"}},
		{Name: "allowed-ips"},
		{Name: "allowed-dhcp-cids"},
	}
}

// FindLinkProperty looks a property up by name.
func FindLinkProperty(name string) (LinkProperty, bool) {
	all := LinkProperties()
	i := slices.IndexFunc(all, func(p LinkProperty) bool { return p.Name == name })
	if i < 0 {
		return LinkProperty{}, false
	}
	return all[i], true
}

// LinkValue is the current value of a property, "" if it has none.
func (tx *Tx) LinkValue(l *Link, p LinkProperty) string {
	switch p.Name {
	case "zone":
		return l.Zone
	case "mtu":
		return strconv.Itoa(tx.LinkMTU(l))
	case "state":
		if l.Up {
			return "up"
		}
		return "down"
	}
	if v, ok := l.Properties[p.Name]; ok {
		return v
	}
	return p.Default
}

// LinkDefault is the default value of a property of this link.
func (tx *Tx) LinkDefault(l *Link, p LinkProperty) string {
	if p.Name == "mtu" {
		return strconv.Itoa(tx.defaultMTU(l))
	}
	return p.Default
}

// LinkMTU is how large a packet the link carries.
func (tx *Tx) LinkMTU(l *Link) int {
	if n, err := strconv.Atoi(l.Properties["mtu"]); err == nil {
		return n
	}
	return tx.defaultMTU(l)
}

// The bounds of an MTU. An etherstub carries 9000 bytes unless told otherwise
// (ANCHOR_VNIC_MAX_MTU in usr/src/uts/common/sys/vnic_impl.h); a VNIC at most
// what its lower link carries.
const (
	minMTU     = 576
	etherMTU   = 1500
	anchorMTU  = 9000
	minVNICMTU = 1280 // Guess: the least that IPv6 needs.
)

func (tx *Tx) defaultMTU(l *Link) int {
	switch l.Class {
	case "etherstub":
		return anchorMTU
	case "vnic", "vlan", "aggr":
		below, _, _ := strings.Cut(l.Over, ",")
		if lower := tx.FindLink(below); lower != nil {
			return tx.LinkMTU(lower)
		}
	}
	return etherMTU
}

// checkMTU takes what the driver would.
// Guess: that a size out of range is "invalid argument", and that shrinking a
// link below one of its VNICs is "link busy".
func (tx *Tx) checkMTU(l *Link, s LinkSetting) error {
	if len(s.Values) != 1 {
		return LinkBadArg
	}
	n, err := strconv.Atoi(s.Values[0])
	low, high := minMTU, anchorMTU
	if lower := tx.FindLink(l.Over); l.Class == "vnic" && lower != nil {
		low, high = minVNICMTU, tx.LinkMTU(lower)
	}
	switch {
	case err != nil:
		return LinkBadValue
	case n < low || n > high:
		return LinkBadArg
	}
	for _, above := range tx.State.Links {
		if set, err := strconv.Atoi(above.Properties["mtu"]); err == nil && above.Over == l.Name && set > n {
			return LinkBusy
		}
	}
	return nil
}

func checkTag(_ *Tx, _ *Link, s LinkSetting) error {
	if n, err := strconv.Atoi(s.joined()); err != nil || n < 0 || n > 4094 {
		return LinkBadValue
	}
	return nil
}

// defaultTag is the VLAN that untagged packets of the link belong to.
func defaultTag(l *Link) int {
	n, err := strconv.Atoi(l.Properties["default_tag"])
	if err != nil {
		return 1
	}
	return n
}

// checkZoneSetting takes running zones with an IP stack of their own
// (check_zone in usr/src/lib/libdladm/common/linkprop.c).
func (tx *Tx) checkZoneSetting(l *Link, s LinkSetting) error {
	for _, z := range tx.State.Zones {
		if z.Name == s.joined() && z.Kernel != nil && z.Kernel.State == "running" && z.Kernel.Config.IPType == "exclusive" {
			return nil
		}
	}
	return LinkBadValue
}

// checkSetting says whether a property may be set so.
func (tx *Tx) checkSetting(l *Link, s LinkSetting, persist bool) error {
	p, ok := FindLinkProperty(s.Name)
	switch {
	case !ok:
		return LinkNotFound
	case p.ReadOnly:
		return LinkReadOnly
	case p.Name == "zone" && persist:
		return LinkTemporaryOnly
	case len(s.Values) == 0:
		return LinkBadArg
	case p.check != nil:
		return p.check(tx, l, s)
	}
	for _, v := range s.Values {
		if p.Possible != nil && !slices.Contains(p.Possible, v) {
			return LinkBadValue
		}
	}
	return nil
}

// SetLinkProperty sets a property (dladm_set_linkprop in
// usr/src/lib/libdladm/common/linkprop.c). A temporary link's properties are
// temporary themselves: setting one persistently changes only what is active
// and is no error.
// Guess: for a temporary link the real function may refuse without -t.
func (tx *Tx) SetLinkProperty(l *Link, s LinkSetting, temporary bool) error {
	if err := tx.checkSetting(l, s, !temporary); err != nil {
		return err
	}
	if s.Name == "zone" {
		return tx.LendLink(s.joined(), l.Name)
	}
	l.change(s.Name, s.joined(), temporary)
	return nil
}

// ResetLinkProperty gives a property its default again.
func (tx *Tx) ResetLinkProperty(l *Link, name string, temporary bool) error {
	p, ok := FindLinkProperty(name)
	switch {
	case !ok:
		return LinkNotFound
	case p.ReadOnly:
		return LinkReadOnly
	case name == "zone" && !temporary:
		return LinkTemporaryOnly
	case name == "zone" && l.Zone != "" && tx.linkOpen(l):
		return LinkBusy
	case name == "zone":
		l.Zone = ""
		return nil
	}
	l.change(name, "", temporary)
	return nil
}

// change sets a property, or removes it if the value is empty. What a
// temporary change hides comes back at the next reboot.
func (l *Link) change(name, value string, temporary bool) {
	if l.Properties == nil {
		l.Properties = map[string]string{}
	}
	if _, hidden := l.Saved[name]; temporary && !hidden {
		if l.Saved == nil {
			l.Saved = map[string]string{}
		}
		l.Saved[name] = l.Properties[name]
	} else if !temporary {
		delete(l.Saved, name)
	}
	l.Properties[name] = value
	if value == "" {
		delete(l.Properties, name)
	}
}
