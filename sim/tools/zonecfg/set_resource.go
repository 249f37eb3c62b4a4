package zonecfg

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world/network"
)

func (s *cfgSession) setDedicatedCPU(name, text string) {
	ok := false
	if name == "importance" {
		_, err := strconv.ParseUint(text, 10, 64)
		ok = err == nil
	} else {
		low, high, ranged := strings.Cut(text, "-")
		if !ranged {
			high = low
		}
		l, lerr := strconv.ParseUint(low, 10, 64)
		h, herr := strconv.ParseUint(high, 10, 64)
		ok = lerr == nil && herr == nil && l >= 1 && l <= h
	}
	if !ok {
		s.fail("%s property is out of range.", name)
		return
	}
	s.work.Set(name, text)
}

func (s *cfgSession) setCappedCPU(text string) {
	n, err := strconv.ParseFloat(text, 32)
	if err != nil || int(n*100) < 1 {
		s.fail("ncpus property is out of range.")
		return
	}
	s.setAlias("ncpus", uint64(n*100))
}

// setCappedMemory sets a cap: the physical one is the resource's, the others
// are resource controls.
func (s *cfgSession) setCappedMemory(name, text string) {
	bytes, ok := memoryLimit(text)
	const mb = 1 << 20
	aliased := slices.Contains(s.memoryAliases(), name)
	if aliased {
		if _, problem := s.aliasLimit(name); problem == zAliasDisallow {
			s.fail("%s: %s", map[string]string{"physical": "physical", "swap": "max-swap", "locked": "locked"}[name], zAliasDisallow)
			return
		}
	}
	switch {
	case !ok && aliased && name != "swap":
		s.fail("A non-negative number with a required scale suffix (K, M, G or T) was expected\nhere.")
	case !ok:
		s.fail("A positive number with a required scale suffix (K, M, G or T) was expected here.")
	case name == "physical" && bytes < mb:
		s.fail("physical value is too small.  It must be at least 1M.")
	case name == "physical" && !aliased:
		s.work.Set("physical", strconv.FormatUint(bytes, 10))
	case name == "swap" && bytes < 50*mb:
		s.fail("swap value is too small.  It must be at least 50M.")
	default:
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
	switch {
	case err == nil && addr.Is6() && !router && !sized:
		s.zerr("%s: IPv6 addresses require /prefix-length suffix.", text)
		return false
	case err == nil && addr.Is6() && (prefix < 0 || prefix > 128):
		s.zerr("%s: IPv6 address prefix lengths must be 0 - 128.", text)
		return false
	case (err != nil || addr.Is4()) && (prefix < 0 || prefix > 32):
		s.zerr("%s: IPv4 address prefix lengths must be 0 - 32.", text)
		return false
	case err == nil:
		return true
	}
	const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	if host == "" || !strings.Contains(alnum, host[:1]) || strings.Trim(host, alnum+"-.") != "" {
		s.fail("%s: bogus host name or network address syntax", host)
		return false
	}
	return true
}

// validPhysical is validate_net_physical_syntax: an exclusive stack takes a
// link name, a shared one an interface name.
func (s *cfgSession) validPhysical(name string) bool {
	if network.ValidLinkName(name) {
		return true
	}
	if s.config.IPType == "exclusive" && strings.Contains(name, ":") {
		s.zerr("%s: physical interface name required; logical interface name not allowed", name)
	} else {
		s.zerr("%s: invalid physical interface name", name)
	}
	return false
}
