// Package record is what the ledger keeps of an instance: its Record, with the spec,
// the incarnation on the host, and what they reserve.
//
// Load, All and Records read, Record.Facts and Record.Replaces write. A record says
// what was decided; what exists on the host is only known by looking at it.
package record

import (
	"fmt"
	"net/netip"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/vnic"
)

// Spec is what an instance is, fully resolved: no default is left open.
type Spec struct {
	CPUs    int     `json:"cpus"`
	Memory  uint64  `json:"memory"` // bytes, a multiple of 1 MiB
	Disks   []Disk  `json:"disks"`
	NICs    []NIC   `json:"nics"`
	Address Address `json:"address"`
	Pool    string  `json:"pool"`
	// Crucible are further disks, behind Disks.
	Crucible []CrucibleDisk `json:"crucible,omitempty"`
	// CPUCap bounds the processor time of the zone; 0: it is not bounded.
	CPUCap CPUCap `json:"cpu_cap,omitempty"`
	// StartOrder is no property of the VM: another one changes nothing on the host.
	StartOrder StartOrder `json:"start_order,omitempty"`
	// Machine is the machine as somebody wrote it down; nil: it is built from
	// the other fields. See machine.go.
	Machine *spec.InstanceSpec `json:"machine,omitempty"`
	// CloudInit is for the guest when it first boots; nil: none. Another one is given to the VM of
	// the next bring-up.
	CloudInit *CloudInit `json:"cloud_init,omitempty"`
}

// Disk is a volume or a file of the host that the guest sees as a disk.
type Disk struct {
	// Path is a file's absolute name, or a volume's raw device below
	// /dev/zvol/rdsk. Of what is wanted, it may be the name of a volume.
	Path     string `json:"path"`
	ReadOnly bool   `json:"readonly"`
	// New, of what is wanted, is a volume that is made with the instance; nil: the disk exists.
	New *NewDisk `json:"-"`
}

// NewDisk is a volume to be made. What is 0 or empty, sledctl chooses.
type NewDisk struct {
	Image string // what it begins as
	Size  uint64 // bytes; 0: the image's
	Block uint64 // bytes
	Pool  string
	// Near is the pool of a disk of the same instance: it lies there, too, if there is room.
	Near string
	Thin bool
	// Follows says that it is deleted with the instance.
	Follows bool
}

// Volume is the dataset of a disk that is a volume.
func (d Disk) Volume() (dataset string, ok bool) {
	return strings.CutPrefix(d.Path, naming.VolumeDevices)
}

// NIC is a network interface of the guest.
type NIC struct {
	Over string `json:"over" toml:"over"` // a physical link or etherstub
	MAC  string `json:"mac" toml:"mac"`   // padded, lower case
	VLAN int    `json:"vlan,omitempty" toml:"vlan"`
	// AllowIP are the addresses that the guest may send from; none: any.
	AllowIP []string `json:"allow_ip,omitempty" toml:"allow_ip"`
	// MaxBW is how many million bits the guest may send, and get, in a second; 0: any.
	MaxBW int `json:"max_bw,omitempty" toml:"max_bw"`
	// OPTE says that the NIC is a port in a VPC, with none of the above but the MAC.
	OPTE bool `json:"opte,omitempty" toml:"opte"`
	Port
}

// LinkText is what it is over, e.g. "net0 vlan 100" or "opte vni 100".
func (n NIC) LinkText() string {
	if n.OPTE {
		return fmt.Sprintf("opte vni %d", n.VNI)
	}
	if n.VLAN == 0 {
		return n.Over
	}
	return fmt.Sprintf("%s vlan %d", n.Over, n.VLAN)
}

// SizeText is a number of bytes with the largest unit that divides it.
func SizeText(n uint64) string {
	units := "KMGT"
	at := -1
	for n != 0 && n%1024 == 0 && at < len(units)-1 {
		n, at = n/1024, at+1
	}
	if at < 0 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%d%c", n, units[at])
}

// Address says how Propolis' control interface gets its address.
type Address struct {
	Mode    string // static, dhcp, addrconf
	Prefix  netip.Prefix
	Gateway netip.Addr // only with static; may be absent
}

// The modes of an address, in ipadm(8)'s words.
const (
	Static   = "static"
	DHCP     = "dhcp"
	Addrconf = "addrconf"
)

// String is the form in which addresses are given: dhcp, addrconf or
// IP/PREFIX[,gateway=IP].
func (a Address) String() string {
	if a.Mode != Static {
		return a.Mode
	}
	if a.Gateway.IsValid() {
		return a.Prefix.String() + ",gateway=" + a.Gateway.String()
	}
	return a.Prefix.String()
}

// MarshalText is String.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText is ParseAddress.
func (a *Address) UnmarshalText(text []byte) error {
	parsed, err := ParseAddress(string(text))
	*a = parsed
	return err
}

// InputError is a value that cannot be: which field, what is wrong with it,
// and what would be right.
type InputError struct {
	Field string
	Value string
	Want  string
	// Absent is set where the value is of the right form and names nothing.
	Absent bool
}

// Error says all three.
func (e *InputError) Error() string {
	return fmt.Sprintf("%s %q: want %s", e.Field, e.Value, e.Want)
}

// Kind separates a wrong form from a name of nothing.
func (e *InputError) Kind() fault.Kind {
	if e.Absent {
		return fault.NotFound
	}
	return fault.Usage
}

// Hint is for a name of nothing; a wrong form has its command's help.
func (e *InputError) Hint() string {
	if e.Absent {
		return "choose one that exists, or create it; then run the same command again"
	}
	return ""
}

// ParseAddress reads dhcp, addrconf or IP/PREFIX[,gateway=IP].
func ParseAddress(s string) (Address, error) {
	const want = "dhcp, addrconf or IP/PREFIX[,gateway=IP], as 10.77.0.5/16"
	bad := &InputError{Field: "address", Value: s, Want: want}
	if s == DHCP || s == Addrconf {
		return Address{Mode: s}, nil
	}
	first, rest, more := strings.Cut(s, ",")
	prefix, err := netip.ParsePrefix(first)
	if err != nil || prefix.Addr().Zone() != "" || prefix.Addr().IsUnspecified() || prefix.Addr().IsMulticast() {
		return Address{}, bad
	}
	a := Address{Mode: Static, Prefix: prefix}
	if !more {
		return a, nil
	}
	gateway, ok := strings.CutPrefix(rest, "gateway=")
	if !ok {
		return Address{}, bad
	}
	a.Gateway, err = netip.ParseAddr(gateway)
	if err != nil || !prefix.Contains(a.Gateway) || a.Gateway == prefix.Addr() {
		return Address{}, &InputError{Field: "gateway", Value: gateway, Want: "another address within " + prefix.Masked().String()}
	}
	return a, nil
}

// Named is the name of the volume that is wanted as a disk; false: the disk is given by its path.
func (d Disk) Named() (volume string, ok bool) { return d.Path, naming.ValidVolume(d.Path) }

// ParseDisk reads NAME[,readonly] or PATH[,readonly]. A volume that is not sledctl's own may be
// named by its dataset, or by its device in /dev/zvol/dsk or /dev/zvol/rdsk.
func ParseDisk(s string) (Disk, error) {
	name, option, more := strings.Cut(s, ",")
	d := Disk{Path: name, ReadOnly: option == "readonly"}
	if more && !d.ReadOnly {
		return Disk{}, &InputError{Field: "disk", Value: s, Want: "NAME, PATH, NAME,readonly or PATH,readonly"}
	}
	return d.Normal()
}

func (d Disk) Normal() (Disk, error) {
	if _, named := d.Named(); named {
		return d, nil
	}
	if rest, ok := strings.CutPrefix(d.Path, "/dev/zvol/dsk/"); ok {
		d.Path = naming.VolumeDevice(rest)
	}
	if d.Path != "" && !strings.HasPrefix(d.Path, "/") && strings.Contains(d.Path, "/") {
		d.Path = naming.VolumeDevice(d.Path)
	}
	if !path.IsAbs(d.Path) || path.Clean(d.Path) != d.Path || d.Path == "/" || strings.ContainsAny(d.Path, "\"\n,") {
		return Disk{}, &InputError{Field: "disk", Value: d.Path, Want: "the name of a volume, an absolute file name, or POOL/NAME"}
	}
	return d, nil
}

// ParseNIC reads [over=LINK][,mac=M][,vlan=V][,max-bw=N][,allow-ip=IP]…, or of a NIC in a VPC
// opte,vni=N,ip=IP,subnet=CIDR[,mac=M][,gateway=IP][,rule=RULE]…[,route=ROUTE]…; the empty string is a NIC
// with every default.
func ParseNIC(s string) (NIC, error) {
	var n NIC
	if s == "" {
		return n, nil
	}
	for word := range strings.SplitSeq(s, ",") {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "over" && value != "" && n.Over == "":
			n.Over = value
		case key == "mac" && value != "" && n.MAC == "":
			n.MAC = value
		case key == "vlan" && value != "" && n.VLAN == 0:
			if n.VLAN = positive(value); n.VLAN == 0 {
				return NIC{}, vlanError(value)
			}
		case key == "max-bw" && n.MaxBW == 0:
			if n.MaxBW = positive(value); n.MaxBW == 0 {
				return NIC{}, maxBWError(value)
			}
		case key == "allow-ip" && value != "":
			n.AllowIP = append(n.AllowIP, value)
		case n.takePort(word):
		default:
			return NIC{}, &InputError{Field: "nic", Value: s, Want: nicWords}
		}
	}
	return n.Normal()
}

const nicWords = "over=LINK, mac=M, vlan=V and max-bw=N, each at most once, and allow-ip=IP, separated by commas; or opte, vni=N, ip=IP, subnet=CIDR, gateway=IP and mac=M, each at most once, and rule=RULE and route=ROUTE"

func (n NIC) Normal() (NIC, error) {
	if bare := (NIC{OPTE: true, MAC: n.MAC, Port: n.Port}); n.OPTE != !n.Port.isZero() || n.OPTE && !reflect.DeepEqual(n, bare) {
		return NIC{}, &InputError{Field: "nic", Value: NicText([]NIC{n}), Want: nicWords}
	}
	if n.OPTE {
		var err error
		if n.Port, err = n.Port.normal(); err != nil {
			return NIC{}, err
		}
	}
	if n.Over != "" {
		if err := vnic.ValidateName(n.Over); err != nil {
			return NIC{}, fmt.Errorf("nic over: %w", err)
		}
	}
	if n.MAC != "" {
		mac, err := vnic.ParseMAC(n.MAC)
		if err != nil {
			return NIC{}, fmt.Errorf("nic mac: %w", err)
		}
		n.MAC = mac
	}
	if n.VLAN < 0 || n.VLAN > 4094 {
		return NIC{}, vlanError(strconv.Itoa(n.VLAN))
	}
	if n.MaxBW != 0 && (n.MaxBW < 2 || n.MaxBW > 1_000_000) {
		return NIC{}, maxBWError(strconv.Itoa(n.MaxBW))
	}
	var err error
	n.AllowIP, err = allowIPs(n.AllowIP)
	return n, err
}

// NICOf returns the guest NIC with a MAC address, or the zero NIC: the control VNIC is none.
func (s Spec) NICOf(mac string) NIC {
	for _, n := range s.NICs {
		if n.MAC == mac {
			return n
		}
	}
	return NIC{}
}

// mostAllowed is how many addresses a link can be held to (MPT_MAXIPADDR of
// usr/src/uts/common/sys/mac_flow.h).
const mostAllowed = 32

// allowIPs gives addresses the form in which they are compared.
func allowIPs(given []string) ([]string, error) {
	if len(given) > mostAllowed {
		return nil, &InputError{Field: "nic allow-ip", Value: strconv.Itoa(len(given)), Want: fmt.Sprintf("at most %d addresses", mostAllowed)}
	}
	var all []string
	for _, s := range given {
		ip, err := netip.ParseAddr(s)
		if err != nil || ip.Zone() != "" || ip.Is4In6() || ip.IsUnspecified() || ip.IsMulticast() {
			return nil, &InputError{Field: "nic allow-ip", Value: s, Want: "the IPv4 or IPv6 address of a host"}
		}
		all = append(all, ip.String())
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// positive reads a number in its shortest form; 0: it is none that can be.
func positive(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || strconv.Itoa(n) != s {
		return 0
	}
	return n
}

func maxBWError(value string) error {
	return &InputError{Field: "nic max-bw", Value: value, Want: "a number of Mbit/s from 2 to 1000000"}
}

func vlanError(value string) error {
	return &InputError{Field: "nic vlan", Value: value, Want: "a number from 1 to 4094"}
}

// LeastMemory and LeastDisk are in bytes: where a size is smaller, a letter was forgotten.
const LeastMemory, LeastDisk = 1 << 20, 1 << 20

// ValidateName reports whether s can name an instance: 1 to 63 of a-z, 0-9, '-'
// and '.', the first and the last a letter or digit, and not a UUID.
func ValidateName(s string) error {
	want := "1 to 63 of a-z, 0-9, - and ., beginning and ending with a letter or digit"
	inside := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '.' }
	edge := func(b byte) bool { return b != '-' && b != '.' }
	if len(s) < 1 || len(s) > 63 || strings.ContainsFunc(s, func(r rune) bool { return !inside(r) }) || !edge(s[0]) || !edge(s[len(s)-1]) {
		return &InputError{Field: "instance name", Value: s, Want: want}
	}
	if uuid.Validate(s) == nil {
		return &InputError{Field: "instance name", Value: s, Want: "a name that is not a UUID"}
	}
	return nil
}

func BadCPUs(n int) error {
	return &InputError{Field: "cpus", Value: strconv.Itoa(n), Want: fmt.Sprintf("a number from 1 to %d", spec.MaxCPUs)}
}

func BadMemory(n uint64) error {
	return &InputError{Field: "memory", Value: strconv.FormatUint(n, 10),
		Want: fmt.Sprintf("a multiple of 1M, from 1M to %dG", spec.MaxMemoryMiB>>10)}
}

// Validate checks what is bounded by itself, host unseen.
func (s Spec) Validate() error {
	switch {
	case s.CPUs < 1 || s.CPUs > spec.MaxCPUs:
		return BadCPUs(s.CPUs)
	case s.CPUCap < 0 || s.CPUCap > MaxCPUCap:
		return badCPUCap(s.CPUCap.String())
	case s.Memory < LeastMemory || s.Memory%(1<<20) != 0 || s.Memory>>20 > spec.MaxMemoryMiB:
		return BadMemory(s.Memory)
	case s.Machine != nil: // bounded by its places
	case len(s.NICs) > 8:
		return &InputError{Field: "nics", Value: strconv.Itoa(len(s.NICs)), Want: "at most 8 NICs"}
	case len(s.Disks)+len(s.Crucible) > 8:
		return &InputError{Field: "disks", Value: strconv.Itoa(len(s.Disks) + len(s.Crucible)), Want: "at most 8 disks"}
	}
	if err := ValidateCrucible(s.Crucible); err != nil {
		return err
	}
	for i, d := range s.Disks {
		if slices.ContainsFunc(s.Disks[:i], func(e Disk) bool { return e.Path == d.Path }) {
			return &InputError{Field: "disks", Value: d.Path, Want: "each path once"}
		}
	}
	for i, n := range s.NICs {
		if n.MAC != "" && slices.ContainsFunc(s.NICs[:i], func(m NIC) bool { return m.MAC == n.MAC }) {
			return &InputError{Field: "nic mac", Value: n.MAC, Want: "each MAC once"}
		}
	}
	return nil
}

func NicText(nics []NIC) string {
	var parts []string
	for _, n := range nics {
		text := "over=" + n.Over + ",mac=" + n.MAC
		if n.OPTE {
			text = n.Port.text() + ",mac=" + n.MAC
		}
		if n.VLAN != 0 {
			text += ",vlan=" + strconv.Itoa(n.VLAN)
		}
		if n.MaxBW != 0 {
			text += ",max-bw=" + strconv.Itoa(n.MaxBW)
		}
		for _, ip := range n.AllowIP {
			text += ",allow-ip=" + ip
		}
		parts = append(parts, text)
	}
	return OrNone(parts)
}

func DiskText(disks []Disk) string {
	var parts []string
	for _, d := range disks {
		if d.ReadOnly {
			d.Path += ",readonly"
		}
		parts = append(parts, d.Path)
	}
	return OrNone(parts)
}

func OrNone(parts []string) string {
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, " ")
}
