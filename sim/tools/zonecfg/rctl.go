package zonecfg

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file has the properties that zonecfg(8) keeps as resource controls, and
// its units.

// cfgAlias is a short name of a resource control (aliases[] in libzonecfg.c).
type cfgAlias struct{ rctl, action string }

// aliasOf finds the control behind a property; of capped-cpu and capped-memory
// too: ncpus, swap, locked.
func aliasOf(property string) (cfgAlias, bool) {
	a, ok := map[string]cfgAlias{
		"max-lwps": {"zone.max-lwps", "deny"}, "max-processes": {"zone.max-processes", "deny"},
		"max-shm-memory": {"zone.max-shm-memory", "deny"}, "max-shm-ids": {"zone.max-shm-ids", "deny"},
		"max-msg-ids": {"zone.max-msg-ids", "deny"}, "max-sem-ids": {"zone.max-sem-ids", "deny"},
		"cpu-shares": {"zone.cpu-shares", "none"}, "ncpus": {"zone.cpu-cap", "deny"},
		"physical": {"zone.max-physical-memory", "deny"}, // not in the gate
		"swap":     {"zone.max-swap", "deny"}, "locked": {"zone.max-locked-memory", "deny"},
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
		_, found := s.aliasLimit(property)
		return found
	})
}

// aliasLimit is the limit behind a property. A control that is more than a simple
// limit is refused.
func (s *cfgSession) aliasLimit(property string) (limit uint64, found bool) {
	a, _ := aliasOf(property)
	for _, r := range s.config.All("rctl") {
		if r.Get("name") != a.rctl {
			continue
		}
		values := r.Values("value")
		cli.Simulated(len(values) == 1)
		v := zones.ParseRctlValue(values[0])
		limit, err := strconv.ParseUint(v.Limit, 10, 64)
		cli.Simulated(err == nil && v.Priv == "privileged" && v.Action == a.action)
		return limit, true
	}
	return 0, false
}

// setAlias sets the limit behind a property.
func (s *cfgSession) setAlias(property string, limit uint64) {
	a, _ := aliasOf(property)
	_, found := s.aliasLimit(property)
	cli.Simulated(!found)
	r := world.Resource{Type: "rctl"}
	r.Set("name", a.rctl)
	r.Set("value", zones.RctlValue{Priv: "privileged", Limit: strconv.FormatUint(limit, 10), Action: a.action}.String())
	s.config.Resources = append(s.config.Resources, r)
	s.changed = true
}

// memoryLimit reads a number with a suffix K, M, G or T (zonecfg_str_to_bytes).
func memoryLimit(text string) (uint64, bool) {
	number := strings.TrimRight(text, "KMGTkmgt ")
	value, err := strconv.ParseFloat(number, 64)
	unit := strings.ToUpper(strings.TrimSpace(text[len(number):]))
	power := strings.Index(" KMGT", " "+unit) // 0: none
	if len(unit) == 1 {
		power = strings.Index(" KMGT", unit)
	}
	if err != nil || value < 0 || power < 0 {
		return 0, false
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
		cli.Simulated(!seen[p.name] && slices.Contains(s.words.Pieces, p.name))
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
	for _, name := range s.words.Pieces {
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
