package zonecfg

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// This file prints a configuration for people (info_func in zonecfg.c). An
// empty value keeps the blank behind its colon.

func (s *cfgSession) info(st cfgStatement) {
	if !s.initialize(true) {
		return
	}
	if !s.global {
		s.infoResource(&s.out, s.work)
		if s.kind == "capped-cpu" {
			s.infoCPUCap()
		}
		return
	}
	switch {
	case st.resource == "":
		s.infoAll()
	case slices.Contains(cfgGlobalNames(), st.resource):
		s.infoGlobal(st.resource)
	case st.resource == "capped-cpu":
		s.infoCPUCap()
	case st.resource == "capped-memory":
		s.infoMemory()
	default:
		s.infoAllOf(st.resource, st.props)
	}
}

// infoAll prints everything, in zonecfg's order.
func (s *cfgSession) infoAll() {
	for _, name := range []string{"zonename", "zonepath", "brand", "autoboot", "bootargs", "pool", "limitpriv",
		"scheduling-class", "ip-type", "hostid", "fs-allowed", "max-lwps", "max-processes", "max-shm-memory", "max-shm-ids",
		"max-msg-ids", "max-sem-ids", "cpu-shares"} {
		if _, aliased := aliasOf(name); !s.isGlobal || aliased || name == "zonename" || name == "pool" {
			s.infoGlobal(name)
		}
	}
	for _, kind := range []string{"fs", "net", "device", "dedicated-cpu"} {
		s.infoAllOf(kind, nil)
	}
	s.infoCPUCap()
	s.infoMemory()
	for _, kind := range []string{"attr", "dataset", "admin", "rctl", "security-flags"} {
		s.infoAllOf(kind, nil)
	}
}

// infoGlobal prints one property of the zone as a whole.
func (s *cfgSession) infoGlobal(name string) {
	if a, ok := aliasOf(name); ok {
		limit, problem := s.aliasLimit(name)
		text := strconv.FormatUint(limit, 10)
		if a.rctl == "zone.max-shm-memory" {
			text = inUnits(limit)
		}
		if problem == "" {
			fmt.Fprintf(&s.out, "[%s: %s]\n", name, text)
		}
		return
	}
	value := s.config.Globals[name]
	switch name {
	case "zonename":
		value = s.zone
	case "zonepath":
		value = s.config.Zonepath
	case "brand":
		value = s.config.Brand
	case "autoboot":
		value = strconv.FormatBool(s.config.Autoboot)
	case "ip-type":
		value = s.config.IPType
	}
	fmt.Fprintf(&s.out, "%s: %s\n", name, value)
}

// infoAllOf prints the resources of a type, those that have all of props.
func (s *cfgSession) infoAllOf(kind string, props []cfgProperty) {
	found := false
	for _, r := range s.config.All(kind) {
		if hasAll(r, props) {
			s.infoResource(&s.out, r)
			found = true
		}
	}
	if !found && len(props) > 0 {
		fmt.Fprintf(&s.out, "No such %s resource.\n", kind)
	}
}

// infoResource prints one resource. What may be left out and is, is not shown;
// anything else that is missing is "not specified".
func (s *cfgSession) infoResource(w io.Writer, r *world.Resource) {
	if r.Type == "capped-cpu" || r.Type == "capped-memory" {
		s.infoMemory()
		return
	}
	fmt.Fprintf(w, "%s:\n", r.Type)
	for _, name := range s.shownProperties(r.Type) {
		value := r.Get(name)
		switch {
		case r.Type == "fs" && name == "options":
			fmt.Fprintf(w, "\toptions: [%s]\n", strings.Join(quotedOptions(r.Values(name)), ","))
		case r.Type == "rctl" && name == "value":
			for _, v := range r.Values(name) {
				fmt.Fprintf(w, "\tvalue: %s\n", v)
			}
		case value != "":
			fmt.Fprintf(w, "\t%s: %s\n", name, quotedValue(value))
		case name != "importance":
			fmt.Fprintf(w, "\t%s not specified\n", name)
		}
	}
}

// shownProperties are those that info shows of a resource, in its order.
func (s *cfgSession) shownProperties(kind string) []string {
	if kind == "net" && s.mode() != world.Helios {
		// OmniOS' order. Guess: SmartOS has the same.
		return []string{"address", "allowed-address", "defrouter", "global-nic", "mac-addr", "physical", "vlan-id"}
	}
	return cfgPropertiesOf(kind)
}

// quotedValue is quoteit: a value with a blank is quoted.
func quotedValue(v string) string {
	if strings.Contains(v, " ") {
		return `"` + v + `"`
	}
	return v
}

func quotedOptions(options []string) []string {
	var quoted []string
	for _, o := range options {
		if strings.Contains(o, "=") {
			o = `"` + o + `"`
		}
		quoted = append(quoted, o)
	}
	return quoted
}

func (s *cfgSession) infoCPUCap() {
	if limit, problem := s.aliasLimit("ncpus"); problem == "" {
		fmt.Fprintf(&s.out, "capped-cpu:\n\t[ncpus: %.2f]\n", float64(limit)/100)
	}
}

// infoMemory prints the memory caps: the one of the resource, or of the one in
// the works, and those that are resource controls in brackets.
func (s *cfgSession) infoMemory() {
	physical := ""
	if r := s.config.All("capped-memory"); len(r) > 0 {
		physical = r[0].Get("physical")
	}
	if !s.global && s.kind == "capped-memory" {
		physical = s.work.Get("physical")
	}
	lines := ""
	if n, err := strconv.ParseUint(physical, 10, 64); err == nil {
		lines += "\tphysical: " + inUnits(n) + "\n"
	}
	for _, name := range s.memoryAliases() {
		if limit, problem := s.aliasLimit(name); problem == "" {
			lines += "\t[" + name + ": " + inUnits(limit) + "]\n"
		}
	}
	if lines != "" {
		s.out.WriteString("capped-memory:\n" + lines)
	}
}
