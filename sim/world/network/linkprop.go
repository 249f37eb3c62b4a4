package network

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
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
	check    func(tx *world.Tx, l *world.Link, s LinkSetting) error
}

// LinkProperties is the table, in the order in which they are listed.
func LinkProperties() []LinkProperty {
	return []LinkProperty{
		{Name: "autopush"},
		{Name: "zone", check: checkZoneSetting},
		{Name: "state", ReadOnly: true, Default: "up", Possible: []string{"up", "down"}},
		{Name: "mtu", check: checkMTU},
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
func LinkValue(tx *world.Tx, l *world.Link, p LinkProperty) string {
	switch p.Name {
	case "zone":
		return l.Zone
	case "mtu":
		return strconv.Itoa(LinkMTU(tx, l))
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
func LinkDefault(tx *world.Tx, l *world.Link, p LinkProperty) string {
	if p.Name == "mtu" {
		return strconv.Itoa(defaultMTU(tx, l))
	}
	return p.Default
}

// LinkMTU is how large a packet the link carries.
func LinkMTU(tx *world.Tx, l *world.Link) int {
	if n, err := strconv.Atoi(l.Properties["mtu"]); err == nil {
		return n
	}
	return defaultMTU(tx, l)
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

func defaultMTU(tx *world.Tx, l *world.Link) int {
	switch l.Class {
	case "etherstub":
		return anchorMTU
	case "vnic", "vlan", "aggr":
		below, _, _ := strings.Cut(l.Over, ",")
		if lower := FindLink(tx, below); lower != nil {
			return LinkMTU(tx, lower)
		}
	}
	return etherMTU
}

// checkMTU takes what the driver would.
// Guess: that a size out of range is "invalid argument", and that shrinking a
// link below one of its VNICs is "link busy".
func checkMTU(tx *world.Tx, l *world.Link, s LinkSetting) error {
	if len(s.Values) != 1 {
		return LinkBadArg
	}
	n, err := strconv.Atoi(s.Values[0])
	low, high := minMTU, anchorMTU
	if lower := FindLink(tx, l.Over); l.Class == "vnic" && lower != nil {
		low, high = minVNICMTU, LinkMTU(tx, lower)
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

func checkTag(_ *world.Tx, _ *world.Link, s LinkSetting) error {
	if n, err := strconv.Atoi(s.joined()); err != nil || n < 0 || n > 4094 {
		return LinkBadValue
	}
	return nil
}

// defaultTag is the VLAN that untagged packets of the link belong to.
func defaultTag(l *world.Link) int {
	n, err := strconv.Atoi(l.Properties["default_tag"])
	if err != nil {
		return 1
	}
	return n
}

// checkZoneSetting takes running zones with an IP stack of their own
// (check_zone in usr/src/lib/libdladm/common/linkprop.c).
func checkZoneSetting(tx *world.Tx, l *world.Link, s LinkSetting) error {
	for _, z := range tx.State.Zones {
		if z.Name == s.joined() && z.Kernel != nil && z.Kernel.State == "running" && z.Kernel.Config.IPType == "exclusive" {
			return nil
		}
	}
	return LinkBadValue
}

// checkSetting says whether a property may be set so.
func checkSetting(tx *world.Tx, l *world.Link, s LinkSetting, persist bool) error {
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
func SetLinkProperty(tx *world.Tx, l *world.Link, s LinkSetting, temporary bool) error {
	if err := checkSetting(tx, l, s, !temporary); err != nil {
		return err
	}
	if s.Name == "zone" {
		return LendLink(tx, s.joined(), l.Name)
	}
	change(l, s.Name, s.joined(), temporary)
	return nil
}

// ResetLinkProperty gives a property its default again.
func ResetLinkProperty(tx *world.Tx, l *world.Link, name string, temporary bool) error {
	p, ok := FindLinkProperty(name)
	switch {
	case !ok:
		return LinkNotFound
	case p.ReadOnly:
		return LinkReadOnly
	case name == "zone" && !temporary:
		return LinkTemporaryOnly
	case name == "zone" && l.Zone != "" && linkOpen(tx, l):
		return LinkBusy
	case name == "zone":
		l.Zone = ""
		return nil
	}
	change(l, name, "", temporary)
	return nil
}

// change sets a property, or removes it if the value is empty. What a
// temporary change hides comes back at the next reboot.
func change(l *world.Link, name, value string, temporary bool) {
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
