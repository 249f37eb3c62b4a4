package opte

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/host"
)

// Mapping says on which sled an address of a VPC is. Those of the sled's own ports are made with
// them; those of others come from who runs the VPC. None is kept over a boot of the sled.
type Mapping struct {
	VNI      int
	IP       netip.Addr
	MAC      string     // lower case, two digits a group
	Physical netip.Addr // IPv6, of the sled on the underlay
}

// Check refuses what opteadm would misunderstand or refuse. The error is an *InvalidError.
func (m Mapping) Check() error {
	switch {
	case !regexp.MustCompile(`^([0-9a-f]{2}:){5}[0-9a-f]{2}$`).MatchString(m.MAC):
		return &InvalidError{"MAC address", m.MAC, "one in lower case, two digits a group"}
	case !m.IP.IsValid() || m.IP.Is4In6() || m.IP.Zone() != "":
		return &InvalidError{"address", m.IP.String(), "an IPv4 or IPv6 address"}
	case m.VNI < 0 || m.VNI > MaxVNI:
		return &InvalidError{"VNI", strconv.Itoa(m.VNI), fmt.Sprintf("a number up to %d", MaxVNI)}
	case !m.Physical.Is6() || m.Physical.Is4In6():
		return &InvalidError{"address of the sled", m.Physical.String(), "an IPv6 address"}
	}
	return nil
}

func (m Mapping) words() []string {
	return []string{m.IP.String(), m.MAC, m.Physical.String(), strconv.Itoa(m.VNI)}
}

// Mappings lists where addresses of VPCs are. Errors: ErrSyntax, ErrNoDriver, a *host.CommandError.
func Mappings(ctx context.Context, h host.Host) ([]Mapping, error) {
	out, err := run(ctx, h, query("dump-v2p"))
	if err != nil {
		return nil, fmt.Errorf("list where addresses of VPCs are: %w", err)
	}
	return ParseMappings(out)
}

// At finds where an address of a VPC is said to be.
func At(all []Mapping, vni int, ip netip.Addr) (Mapping, bool) {
	i := slices.IndexFunc(all, func(m Mapping) bool { return m.VNI == vni && m.IP == ip })
	if i < 0 {
		return Mapping{}, false
	}
	return all[i], true
}

// ParseMappings reads opteadm dump-v2p (print_v2p of lib/oxide-vpc/src/print.rs). Errors are ErrSyntax.
func ParseMappings(out []byte) ([]Mapping, error) {
	lines, err := linesOf(out)
	if err != nil {
		return nil, err
	}
	if len(lines) < 2 || lines[0] != "Virtual to Physical Mappings" || strings.Trim(lines[1], "=") != "" {
		return nil, fmt.Errorf("mappings %q: %w", lines[0], ErrSyntax)
	}
	all, vni, family, table := []Mapping{}, -1, "", grid{}
	for _, line := range lines[2:] {
		text, isVPC := strings.CutPrefix(line, "VPC ")
		head, isFamily := strings.CutSuffix(line, " mappings")
		switch {
		case line == "":
			table = grid{}
		case strings.Trim(line, "-") == "":
		case isVPC:
			n, ok := number(text, MaxVNI)
			if !ok {
				return nil, fmt.Errorf("VPC %q: %w", text, ErrSyntax)
			}
			vni = n
		case isFamily && vni >= 0 && (head == "IPv4" || head == "IPv6"):
			family = head
		case table.starts == nil && family != "":
			table, err = header(line, "VPC_IP", "VPC MAC ADDR", "UNDERLAY IP")
		default:
			var m Mapping
			m, err = table.mapping(line, vni, family)
			all = append(all, m)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (g grid) mapping(line string, vni int, family string) (Mapping, error) {
	bad := fmt.Errorf("mapping %q: %w", line, ErrSyntax)
	if g.starts == nil {
		return Mapping{}, bad
	}
	cells, err := g.cells(line)
	if err != nil {
		return Mapping{}, err
	}
	ip, err := netip.ParseAddr(cells[0])
	physical, failed := netip.ParseAddr(cells[2])
	m := Mapping{VNI: vni, IP: ip, MAC: strings.ToLower(cells[1]), Physical: physical}
	if err != nil || failed != nil || m.Check() != nil || ip.Is4() != (family == "IPv4") || strings.ToUpper(m.MAC) != cells[1] {
		return Mapping{}, bad
	}
	return m, nil
}

// SetMapping says where an address of a VPC is, in the place of Before, if that is set. Errors:
// host.ErrState where something else is known; *VersionError.
type SetMapping struct {
	Mapping
	Before *Mapping
}

// ClearMapping forgets where one is. Errors: host.ErrNotFound; host.ErrState where something else is
// known about it; *VersionError.
type ClearMapping struct{ Mapping }

// Verb names the step.
func (SetMapping) Verb() string { return "opte.set-mapping" }

// Verb names the step.
func (ClearMapping) Verb() string { return "opte.clear-mapping" }

// Undo says what was said before.
func (s SetMapping) Undo() any {
	if s.Before == nil {
		return ClearMapping{s.Mapping}
	}
	return SetMapping{Mapping: *s.Before, Before: &s.Mapping}
}

// Undo is SetMapping.
func (s ClearMapping) Undo() any { return SetMapping{Mapping: s.Mapping} }

// Explain is the set-v2p; nothing if Do would refuse the values.
func (s SetMapping) Explain() []host.Line {
	if s.Check() != nil {
		return nil
	}
	return []host.Line{host.CommandLine(opteadm(append([]string{"set-v2p"}, s.words()...)...))}
}

// Explain is the clear-v2p; nothing if Do would refuse the values.
func (s ClearMapping) Explain() []host.Line {
	if s.Check() != nil {
		return nil
	}
	return []host.Line{host.CommandLine(opteadm(append([]string{"clear-v2p"}, s.words()...)...))}
}

// Do says it.
func (s SetMapping) Do(ctx context.Context, h host.Host) error {
	is, there, err := s.look(ctx, h)
	switch {
	case err != nil:
	case there && s.Before == nil:
		err = fmt.Errorf("it is at %s: %w", is.Physical, host.ErrExists)
	case s.Before != nil && (!there || is != *s.Before):
		err = fmt.Errorf("it is not at %s: %w", s.Before.Physical, host.ErrState)
	default:
		_, err = run(ctx, h, opteadm(append([]string{"set-v2p"}, s.words()...)...))
	}
	if err != nil {
		return fmt.Errorf("say where %s of VPC %d is: %w", s.IP, s.VNI, err)
	}
	return nil
}

// Do forgets it.
func (s ClearMapping) Do(ctx context.Context, h host.Host) error {
	is, there, err := s.look(ctx, h)
	switch {
	case err != nil:
	case !there:
		err = host.ErrNotFound
	case is != s.Mapping:
		err = fmt.Errorf("it is at %s: %w", is.Physical, host.ErrState)
	default:
		_, err = run(ctx, h, opteadm(append([]string{"clear-v2p"}, s.words()...)...))
	}
	if err != nil {
		return fmt.Errorf("forget where %s of VPC %d is: %w", s.IP, s.VNI, err)
	}
	return nil
}

// look finds what is known about the same address.
func (m Mapping) look(ctx context.Context, h host.Host) (is Mapping, there bool, err error) {
	if err = m.Check(); err == nil {
		err = Check(ctx, h)
	}
	var all []Mapping
	if err == nil {
		all, err = Mappings(ctx, h)
	}
	is, there = At(all, m.VNI, m.IP)
	return is, there, err
}
