package zonecfg

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/network"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file sets and clears properties, of the zone as a whole and of the
// resource that is being specified (set_func, clear_func in zonecfg.c).

func (s *cfgSession) set(st cfgStatement) {
	p := st.props[0]
	several := s.kind == "fs" && p.name == "options" || s.kind == "rctl" && p.name == "value"
	cli.Simulated(len(st.args) == 0 && (p.value.kind == "simple" || !s.global && several))
	cli.Simulated(!s.global || p.name != "zonename" || s.got || s.stateAtLeast(world.ZoneConfigured))
	if !s.initialize(true) {
		return
	}
	if s.global {
		s.setGlobal(p.name, p.value.text)
		return
	}
	s.setProperty(p)
}

func (s *cfgSession) setGlobal(name, value string) {
	switch name {
	case "zonename":
		s.rename(value)
	case "zonepath", "brand":
		// Not an error that counts: the exit code stays 0.
		if s.stateAtLeast(world.ZoneInstalled) {
			s.zerr("Zone %s already installed; set %s not allowed.", s.zone, name)
			return
		}
		if name == "brand" {
			s.config.Brand, s.changed = cmp.Or(value, defaultBrand), true
			return
		}
		s.setZonepath(value)
	case "autoboot":
		if value != "true" && value != "false" {
			s.fail("autoboot value must be 'true' or 'false'.")
			return
		}
		s.config.Autoboot, s.changed = value == "true", true
	case "ip-type":
		if value != "shared" && value != "exclusive" {
			s.fail("ip-type value must be 'shared' or 'exclusive'.")
			return
		}
		s.config.IPType, s.changed = value, true
	case "fs-allowed", "limitpriv", "bootargs", "scheduling-class":
		cli.Simulated(name != "fs-allowed" || strings.Trim(value, alnum+"-,") == "" && !strings.Contains(","+value+",", ",,"))
		s.config.SetGlobal(name, value)
		s.changed = true
	default:
		cli.Simulated(false)
	}
}

// defaultBrand is that of a configuration that names none (zonecfg_get_brand).
const defaultBrand = "ipkg"

// setZonepath takes an absolute path that is not /, without double slashes and
// without one at the end (validate_zonepath_syntax, zonecfg_set_zonepath).
func (s *cfgSession) setZonepath(value string) {
	if !strings.HasPrefix(value, "/") {
		s.fail("%s is not an absolute path.", value)
		return
	}
	parts := strings.FieldsFunc(value, func(r rune) bool { return r == '/' })
	cli.Simulated(len(parts) > 0)
	s.config.Zonepath, s.changed = "/"+strings.Join(parts, "/"), true
}

// rename is set zonename.
func (s *cfgSession) rename(name string) {
	z := s.tx.FindZone(s.saved)
	cli.Simulated(validZoneName(name) && (name == s.saved || s.tx.FindZone(name) == nil))
	cli.Simulated(z == nil || zones.ZoneRank(z.Current()) <= zones.ZoneRank(world.ZoneInstalled))
	s.zone, s.changed = name, true
}

// setProperty sets a property of the resource in the works.
func (s *cfgSession) setProperty(p cfgProperty) {
	own := s.kind == "net" && s.mode() != world.Helios && slices.Contains(s.words.Own, p.name)
	if !own && !slices.Contains(s.words.Properties[s.kind], p.name) {
		s.fail("%s: %s", p.name, zNoPropertyType)
		usage := s.words.Usage["set"]
		s.err.WriteString("usage:\n" + usage[0] + "\n\t" + usage[1] + "\n")
		s.usageOfProperties()
		return
	}
	switch text := p.value.text; {
	case p.name == "options" || s.kind == "rctl" && p.name == "value":
		s.work.Set(p.name)
		s.addProperty(p)
	case s.kind == "net" && !s.validNet(p.name, text):
		s.sawError = true
	case s.kind == "rctl" && p.name == "name" && !validRctlName(text):
		s.zerr("'%s' is not a valid zone rctl name.", text)
	case s.kind == "dedicated-cpu":
		s.setDedicatedCPU(p.name, text)
	case s.kind == "capped-cpu":
		n, err := strconv.ParseFloat(text, 32)
		if err != nil || int(n*100) < 1 {
			s.fail("%s property is out of range.", p.name)
			return
		}
		s.setAlias("ncpus", uint64(n*100))
	case s.kind == "capped-memory":
		s.setCappedMemory(p.name, text)
	case text == "":
		cli.Simulated(s.kind != "fs" || p.name != "type")
		s.work.Set(p.name)
	case s.kind == "attr" && p.name == "name":
		s.work.Set(p.name, text[:min(len(text), attrNameMax)])
	default:
		cli.Simulated(s.kind != "fs" || p.name != "type" || !strings.Contains(text, "/") && text != "." && text != "..")
		s.work.Set(p.name, text)
	}
}

// attrNameMax is how long the name of an attr can be; what is beyond is cut off
// (MAXNAMELEN - 1).
const attrNameMax = 255

// validRctlName is zonecfg_valid_rctlname: zone. and letters, digits, "-".
func validRctlName(name string) bool {
	rest, ok := strings.CutPrefix(name, "zone.")
	return ok && rest != "" && strings.Trim(rest, alnum+"-") == ""
}

func (s *cfgSession) setDedicatedCPU(name, text string) {
	low, high, ranged := strings.Cut(text, "-")
	if !ranged {
		high = low
	}
	l, lerr := strconv.ParseUint(low, 10, 64)
	h, herr := strconv.ParseUint(high, 10, 64)
	cli.Simulated(lerr == nil && herr == nil && (name == "importance" && !ranged || name == "ncpus" && l >= 1 && l <= h))
	s.work.Set(name, text)
}

// setCappedMemory sets a cap: the physical one is the resource's, the others
// are resource controls.
func (s *cfgSession) setCappedMemory(name, text string) {
	bytes, ok := memoryLimit(text)
	const mb = 1 << 20
	aliased := slices.Contains(s.memoryAliases(), name)
	switch {
	case !ok && aliased && name != "swap":
		s.fail("A non-negative number with a required scale suffix (K, M, G or T) was expected\nhere.")
	case !ok:
		s.fail("A positive number with a required scale suffix (K, M, G or T) was expected here.")
	case name == "physical" && !aliased:
		cli.Simulated(bytes >= mb)
		s.work.Set("physical", strconv.FormatUint(bytes, 10))
	default:
		cli.Simulated(bytes >= map[string]uint64{"physical": mb, "swap": 50 * mb}[name])
		s.setAlias(name, bytes)
	}
}

// validNet checks a property of a net resource and says what is wrong.
func (s *cfgSession) validNet(name, text string) bool {
	switch name {
	case "address", "allowed-address":
		return s.validAddress(text, false)
	case "defrouter":
		return s.validAddress(text, true)
	case "physical":
		return s.validPhysical(text)
	}
	return true
}

// validAddress is validate_net_address_syntax.
func (s *cfgSession) validAddress(text string, router bool) bool {
	host, length, sized := strings.Cut(text, "/")
	prefix, _ := strconv.Atoi(length) // atoi: what is no number is 0
	if router && sized {
		s.zerr("Warning: prefix length in %s is not required and will be ignored. The default host-prefix length will be used", text)
		prefix = 0
	}
	addr, err := netip.ParseAddr(host)
	switch six := err == nil && addr.Is6(); {
	case six && !router && !sized:
		s.zerr("%s: IPv6 addresses require /prefix-length suffix.", text)
		return false
	case six:
		cli.Simulated(prefix >= 0 && prefix <= 128)
	case prefix < 0 || prefix > 32:
		s.zerr("%s: IPv4 address prefix lengths must be 0 - 32.", text)
		return false
	case err != nil: // the name of a host
		cli.Simulated(host != "" && strings.Contains(alnum, host[:1]) && strings.Trim(host, alnum+"-.") == "")
	}
	return true
}

// validPhysical is validate_net_physical_syntax: an exclusive stack takes a
// link name, a shared one an interface name.
func (s *cfgSession) validPhysical(name string) bool {
	if network.ValidLinkName(name) {
		return true
	}
	cli.Simulated(s.config.IPType != "exclusive" || !strings.Contains(name, ":"))
	s.zerr("%s: invalid physical interface name", name)
	return false
}

// clear drops a property.
func (s *cfgSession) clear(st cfgStatement) {
	if !s.initialize(true) {
		return
	}
	name := st.props[0].name
	if s.global && slices.Contains([]string{"zonename", "zonepath", "brand"}, name) {
		s.fail("%s: Clearing this property is not allowed", name)
		return
	}
	cli.Simulated(s.global && slices.Contains([]string{"pool", "limitpriv", "bootargs", "scheduling-class", "hostid", "fs-allowed"}, name))
	s.config.ClearGlobal(name)
	s.changed = true
}
