package zonecfg

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// This file sets and clears properties, of the zone as a whole and of the
// resource that is being specified (set_func, clear_func in zonecfg.c).

func (s *cfgSession) set(st cfgStatement) {
	if s.readOnly() {
		return
	}
	forced := false
	if len(st.args) > 0 {
		if forced = st.args[0] == "-F"; !forced {
			s.shortUsage("set")
			return
		}
	}
	p := st.props[0]
	if s.global && s.refusedGlobal(p.name, forced) {
		return
	}
	several := s.kind == "fs" && p.name == "options" || s.kind == "rctl" && p.name == "value"
	if p.value.kind != "simple" && (s.global || !several) {
		s.fail("A simple value was expected here.")
		return
	}
	if s.global && p.name == "zonename" && !s.got && !s.stateAtLeast(world.ZoneConfigured) {
		if !validZoneName(p.value.text) {
			s.fail("%s: %s", p.value.text, zBogusName)
			s.usage(&s.err, cfgHelpSyntax, false)
			return
		}
		s.zone = p.value.text
		return
	}
	if !s.initialize(true) {
		return
	}
	if s.global {
		s.setGlobal(p.name, p.value.text)
		return
	}
	s.setProperty(p)
}

// refusedGlobal says what cannot be set in the global scope.
func (s *cfgSession) refusedGlobal(name string, forced bool) bool {
	ofZone := []string{"zonename", "zonepath", "autoboot", "limitpriv", "bootargs", "brand", "scheduling-class", "ip-type",
		"hostid", "fs-allowed"}
	switch {
	case s.isGlobal && slices.Contains(ofZone, name):
		s.fail("%s is not a valid property for the global zone.", name)
	case !slices.Contains(cfgGlobalNames(), name):
		s.fail("Cannot set a resource-specific property from the global scope.")
	case forced && name != "zonepath":
		s.fail("Only zonepath setting can be forced.")
	case forced:
		s.fail("Zonepath is changeable only in an alternate root.")
	default:
		return false
	}
	return true
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
		s.setIPType(value)
	case "pool":
		s.setPool(value)
	case "hostid":
		s.setHostid(value)
	case "fs-allowed":
		if !validFSAllowed(value) {
			s.fail("%s: %s", s.zone, zInvalidProperty)
			return
		}
		s.putGlobal(name, value)
	case "limitpriv", "bootargs", "scheduling-class":
		s.putGlobal(name, value)
	default:
		s.setAliased(name, value)
	}
}

// defaultBrand is that of a configuration that names none (zonecfg_get_brand).
const defaultBrand = "ipkg"

func (s *cfgSession) putGlobal(name, value string) {
	s.config.SetGlobal(name, value)
	s.changed = true
}

// setZonepath takes an absolute path that is not /, without double slashes and
// without one at the end (validate_zonepath_syntax, zonecfg_set_zonepath).
func (s *cfgSession) setZonepath(value string) {
	switch {
	case !strings.HasPrefix(value, "/"):
		s.fail("%s is not an absolute path.", value)
		return
	case strings.Trim(value, "/") == "":
		s.fail("/ is not allowed as a zonepath.")
		return
	}
	parts := strings.FieldsFunc(value, func(r rune) bool { return r == '/' })
	s.config.Zonepath, s.changed = "/"+strings.Join(parts, "/"), true
}

func (s *cfgSession) setIPType(value string) {
	if value != "shared" && value != "exclusive" {
		s.fail("ip-type value must be 'shared' or 'exclusive'.")
		return
	}
	if value == "exclusive" {
		if !slices.Contains(Brands(s.tx.State.Mode), s.config.Brand) {
			s.zerr("%s: unknown brand.\n", s.zone)
			s.sawError = true
			return
		}
	}
	s.config.IPType, s.changed = value, true
}

func (s *cfgSession) setPool(value string) {
	switch {
	case strings.HasPrefix(value, "SUNW"):
		s.fail("pool names starting with SUNW are reserved.")
	case s.hasResource("dedicated-cpu"):
		s.fail("The dedicated-cpu resource already exists.  A persistent pool is incompatible\nwith the dedicated-cpu resource.")
	default:
		s.putGlobal("pool", value)
	}
}

// setHostid takes up to eight hexadecimal digits, not all of them f
// (zonecfg_valid_hostid).
func (s *cfgSession) setHostid(value string) {
	digits := strings.TrimPrefix(strings.TrimPrefix(value, "0x"), "0X")
	id, err := strconv.ParseUint(digits, 16, 64)
	switch {
	case err == nil && len(value) > 10:
		s.fail("hostid string is too large: %s", value)
	case err != nil || id >= 1<<32-1:
		s.fail("hostid: %s", zInvalidProperty)
	default:
		s.putGlobal("hostid", value)
	}
}

func validFSAllowed(list string) bool {
	for name := range strings.SplitSeq(list, ",") {
		if name == "" && list != "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
			return false
		}
	}
	return true
}

// noProperty is for a property that the resource does not have.
func (s *cfgSession) noProperty(command, name string) {
	s.fail("%s: %s", name, zNoPropertyType)
	s.longUsage(command)
	s.usage(&s.err, cfgHelpProperties, false)
}

// setProperty sets a property of the resource in the works.
func (s *cfgSession) setProperty(p cfgProperty) {
	if !s.knows(p.name) {
		s.noProperty("set", p.name)
		return
	}
	switch text := p.value.text; {
	case p.name == "options" || s.kind == "rctl" && p.name == "value":
		s.work.Set(p.name)
		s.addProperty(p)
	case s.kind == "fs" && p.name == "type":
		if text == "" || strings.Contains(text, "/") || text == "." || text == ".." {
			s.fail("\"%s\" is not a valid type.", text)
			return
		}
		s.work.Set("type", text)
	case s.kind == "net" && !s.validNet(p.name, text):
		s.sawError = true
	case s.kind == "rctl" && p.name == "name" && !validRctlName(text):
		s.zerr("'%s' is not a valid zone rctl name.", text)
	case s.kind == "dedicated-cpu":
		s.setDedicatedCPU(p.name, text)
	case s.kind == "capped-cpu":
		s.setCappedCPU(text)
	case s.kind == "capped-memory":
		s.setCappedMemory(p.name, text)
	case text == "":
		s.work.Set(p.name)
	case s.kind == "attr" && p.name == "name":
		s.work.Set(p.name, text[:min(len(text), attrNameMax)])
	default:
		s.work.Set(p.name, text)
	}
}

// attrNameMax is how long the name of an attr can be; what is beyond is cut off
// (MAXNAMELEN - 1).
const attrNameMax = 255

// knows says whether the resource in the works has a property of this name.
func (s *cfgSession) knows(name string) bool {
	if s.kind == "net" && s.mode() != world.Helios && slices.Contains(cfgOwnNames(), name) {
		return true
	}
	return slices.Contains(cfgPropertiesOf(s.kind), name)
}

// validRctlName is zonecfg_valid_rctlname: zone. and letters, digits, "-".
func validRctlName(name string) bool {
	rest, ok := strings.CutPrefix(name, "zone.")
	return ok && rest != "" && strings.Trim(rest, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") == ""
}

// clear drops a property.
func (s *cfgSession) clear(st cfgStatement) {
	name := st.props[0].name
	if s.readOnly() || s.global && s.isGlobal && s.refusedGlobal(name, false) || !s.initialize(true) {
		return
	}
	if !s.global {
		s.clearProperty(name)
		return
	}
	switch name {
	case "zonename", "zonepath", "brand":
		s.fail("%s: %s", name, zClearDisallow)
	case "autoboot":
		s.config.Autoboot, s.changed = false, true
	case "ip-type":
		s.config.IPType, s.changed = "shared", true
	case "pool", "limitpriv", "bootargs", "scheduling-class", "hostid", "fs-allowed":
		s.config.ClearGlobal(name)
		s.changed = true
	default:
		if _, ok := aliasOf(name); ok && slices.Contains(cfgGlobalNames(), name) {
			s.clearAliased(name)
			return
		}
		s.noProperty("clear", name)
	}
}

func (s *cfgSession) clearProperty(name string) {
	if s.kind == "capped-memory" && slices.Contains(s.memoryAliases(), name) {
		s.clearAliased(name)
		return
	}
	switch s.kind + " " + name {
	case "fs raw", "dedicated-cpu importance", "capped-memory physical":
		s.work.Set(name)
		s.changed = true
	default:
		s.fail("%s: %s", name, zClearDisallow)
	}
}
