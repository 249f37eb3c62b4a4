package zonecfg

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file has the properties that zonecfg(8) keeps as resource controls, and
// its units.

// cfgAlias is a short name of a resource control (aliases[] in libzonecfg.c).
type cfgAlias struct {
	rctl   string
	action string
	low    uint64 // the smallest limit
}

// aliasOf finds the control behind a property; of capped-cpu and capped-memory
// too: ncpus, swap, locked.
func aliasOf(property string) (cfgAlias, bool) {
	a, ok := map[string]cfgAlias{
		"max-lwps":       {"zone.max-lwps", "deny", 100},
		"max-processes":  {"zone.max-processes", "deny", 100},
		"max-shm-memory": {"zone.max-shm-memory", "deny", 0},
		"max-shm-ids":    {"zone.max-shm-ids", "deny", 0},
		"max-msg-ids":    {"zone.max-msg-ids", "deny", 0},
		"max-sem-ids":    {"zone.max-sem-ids", "deny", 0},
		"cpu-shares":     {"zone.cpu-shares", "none", 1},
		"ncpus":          {"zone.cpu-cap", "deny", 1},
		"physical":       {"zone.max-physical-memory", "deny", 0}, // not in the gate
		"swap":           {"zone.max-swap", "deny", 0},
		"locked":         {"zone.max-locked-memory", "deny", 0},
	}[property]
	return a, ok
}

// memoryAliases are the caps of capped-memory that are resource controls. The
// physical one is rcapd's in the gate (github.com/joyent/illumos-joyent has no rcapd,
// and OmniOS follows it).
func (s *cfgSession) memoryAliases() []string {
	if s.mode() == world.Helios {
		return []string{"swap", "locked"}
	}
	return []string{"physical", "swap", "locked"}
}

// hasMemoryCap says whether any of them is set.
func (s *cfgSession) hasMemoryCap() bool {
	return slices.ContainsFunc(s.memoryAliases(), func(property string) bool {
		_, problem := s.aliasLimit(property)
		return problem == ""
	})
}

// aliasLimit is the limit behind a property. The problem is zNoEntry if there
// is none, zAliasDisallow if the control is more than a simple limit.
func (s *cfgSession) aliasLimit(property string) (limit uint64, problem string) {
	a, _ := aliasOf(property)
	for _, r := range s.config.All("rctl") {
		if r.Get("name") != a.rctl {
			continue
		}
		values := r.Values("value")
		if len(values) != 1 {
			return 0, zAliasDisallow
		}
		v := zones.ParseRctlValue(values[0])
		limit, err := strconv.ParseUint(v.Limit, 10, 64)
		if err != nil || v.Priv != "privileged" || v.Action != a.action {
			return 0, zAliasDisallow
		}
		return limit, ""
	}
	return 0, zNoEntry
}

// setAlias sets the limit behind a property.
func (s *cfgSession) setAlias(property string, limit uint64) {
	a, _ := aliasOf(property)
	s.dropAlias(property)
	r := world.Resource{Type: "rctl"}
	r.Set("name", a.rctl)
	r.Set("value", zones.RctlValue{Priv: "privileged", Limit: strconv.FormatUint(limit, 10), Action: a.action}.String())
	s.config.Resources = append(s.config.Resources, r)
	s.changed = true
}

func (s *cfgSession) dropAlias(property string) {
	a, _ := aliasOf(property)
	s.config.Resources = slices.DeleteFunc(s.config.Resources, func(r world.Resource) bool {
		return r.Type == "rctl" && r.Get("name") == a.rctl
	})
	s.changed = true
}

// setAliased is "set max-lwps=…" and its like.
func (s *cfgSession) setAliased(property, text string) {
	a, _ := aliasOf(property)
	if property == "max-shm-memory" {
		bytes, ok := memoryLimit(text)
		if !ok {
			s.fail("A non-negative number with a required scale suffix (K, M, G or T) was expected\nhere.")
			return
		}
		text = strconv.FormatUint(bytes, 10)
	}
	limit, err := strconv.ParseUint(text, 10, 64)
	switch _, problem := s.aliasLimit(property); {
	case problem == zAliasDisallow:
		s.fail("%s: %s", property, zAliasDisallow)
	case err != nil || limit < a.low:
		s.fail("%s property is out of range.", property)
	default:
		s.setAlias(property, limit)
	}
}

// clearAliased is "clear max-lwps" and its like.
func (s *cfgSession) clearAliased(property string) {
	if _, problem := s.aliasLimit(property); problem != "" {
		s.fail("clear %s: %s", property, problem)
		return
	}
	s.dropAlias(property)
}

// memoryLimit reads a number with a suffix K, M, G or T (zonecfg_str_to_bytes).
func memoryLimit(text string) (uint64, bool) {
	number := strings.TrimRight(text, "KMGTkmgt ")
	value, err := strconv.ParseFloat(number, 64)
	if err != nil || value < 0 {
		return 0, false
	}
	unit := strings.ToUpper(strings.TrimSpace(text[len(number):]))
	power := strings.Index(" KMGT", unit)
	if len(unit) > 1 || power < 0 {
		return 0, false
	}
	if unit == "" {
		power = 0
	}
	return uint64(value * float64(uint64(1)<<(10*power))), true
}

// inUnits prints bytes as bytes_to_units does.
func inUnits(bytes uint64) string {
	if bytes < 1024 {
		return strconv.FormatUint(bytes, 10)
	}
	value, before, unit := bytes, uint64(0), 0
	for value >= 1024 && unit < 4 {
		before = value
		value = (value + 512) >> 10
		unit++
	}
	if before%1024 != 0 && before>>10 < 10 {
		return fmt.Sprintf("%2.1f%c", float64(before)/1024, "BKMGT"[unit])
	}
	return fmt.Sprintf("%d%c", value, "BKMGT"[unit])
}

// addRctlValue adds a value to the control in the works. What is wrong with it
// is said, but does not count as an error (do_complex_rctl_val).
func (s *cfgSession) addRctlValue(v cfgValue) {
	var value zones.RctlValue
	seen := map[string]bool{}
	for _, p := range v.pair {
		switch {
		case p.name != "priv" && p.name != "limit" && p.name != "action":
			s.fail("value: %s", zNoPropertyType)
			s.longUsage("add")
			s.usage(&s.err, cfgHelpProperties, false)
			return
		case seen[p.name]:
			s.zerr("%s already specified", p.name)
			return
		}
		seen[p.name] = true
		switch p.name {
		case "priv":
			value.Priv = p.value.text
		case "limit":
			value.Limit = p.value.text
		case "action":
			value.Action = p.value.text
		}
	}
	for _, name := range []string{"priv", "limit", "action"} {
		if !seen[name] {
			s.zerr("%s not specified", name)
		}
	}
	if len(seen) < 3 {
		return
	}
	if _, err := strconv.ParseUint(value.Limit, 10, 64); err != nil || value.Priv != "privileged" ||
		value.Action != "none" && value.Action != "deny" {
		s.zerr("Invalid rctl value specification")
		return
	}
	s.work.Set("value", append(slices.Clone(s.work.Values("value")), value.String())...)
}
