package zonecfg

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file prints a configuration for people (info_func in zonecfg.c). An
// empty value keeps the blank behind its colon.

func (s *cfgSession) info(st cfgStatement) {
	if !s.initialize(true) {
		return
	}
	if !s.global {
		s.infoResource(s.work)
		if s.kind == "capped-cpu" {
			s.infoCPUCap()
		}
		return
	}
	switch {
	case st.resource == "":
		s.infoAll()
	case slices.Contains(s.words.Globals, st.resource):
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
	for _, name := range s.words.Globals {
		s.infoGlobal(name)
	}
	for _, kind := range []string{"fs", "net", "device", "dedicated-cpu"} {
		s.infoAllOf(kind, nil)
	}
	s.infoCPUCap()
	s.infoMemory()
	for _, kind := range []string{"attr", "dataset", "rctl"} {
		s.infoAllOf(kind, nil)
	}
}

// infoGlobal prints one property of the zone as a whole.
func (s *cfgSession) infoGlobal(name string) {
	if a, ok := aliasOf(name); ok {
		limit, found := s.aliasLimit(name)
		text := strconv.FormatUint(limit, 10)
		if a.rctl == "zone.max-shm-memory" {
			text = inUnits(limit)
		}
		if found {
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
			s.infoResource(r)
			found = true
		}
	}
	if !found && len(props) > 0 {
		fmt.Fprintf(&s.out, "No such %s resource.\n", kind)
	}
}

// infoResource prints one resource. What may be left out and is, is not shown;
// anything else that is missing is "not specified".
//
// Guess smartos-zonecfg-is-omnios: where SmartOS' zonecfg differs from the gate's, it is as OmniOS'
// (928 answers of the real program, of the gate and of OmniOS, are equal here:
// `go test -v -run ZonecfgAnswers ./sim/tools`).
// Check: `zonecfg -z ZONE info`
func (s *cfgSession) infoResource(r *world.Resource) {
	if r.Type == "capped-cpu" || r.Type == "capped-memory" {
		s.infoMemory()
		return
	}
	w := &s.out
	fmt.Fprintf(w, "%s:\n", r.Type)
	names := s.words.Properties[r.Type]
	if r.Type == "net" && s.mode() != world.Helios {
		// OmniOS' order.
		names = []string{"address", "allowed-address", "defrouter", "global-nic", "mac-addr", "physical", "vlan-id"}
	}
	for _, name := range names {
		value := r.Get(name)
		switch {
		case r.Type == "fs" && name == "options":
			fmt.Fprintf(w, "\toptions: [%s]\n", strings.Join(quotedOptions(r.Values(name)), ","))
		case r.Type == "rctl" && name == "value":
			for _, v := range r.Values(name) {
				fmt.Fprintf(w, "\tvalue: %s\n", v)
			}
		case strings.Contains(value, " "): // quoteit
			fmt.Fprintf(w, "\t%s: \"%s\"\n", name, value)
		case value != "":
			fmt.Fprintf(w, "\t%s: %s\n", name, value)
		case name != "importance":
			fmt.Fprintf(w, "\t%s not specified\n", name)
		}
	}
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
	if limit, found := s.aliasLimit("ncpus"); found {
		fmt.Fprintf(&s.out, "capped-cpu:\n\t[ncpus: %.2f]\n", float64(limit)/100)
	}
}

// infoMemory prints the memory caps: the one of the resource, and those that are
// resource controls in brackets.
func (s *cfgSession) infoMemory() {
	cli.Simulated(s.global || s.kind != "capped-memory")
	physical := ""
	if r := s.config.All("capped-memory"); len(r) > 0 {
		physical = r[0].Get("physical")
	}
	lines := ""
	if n, err := strconv.ParseUint(physical, 10, 64); err == nil {
		lines += "\tphysical: " + inUnits(n) + "\n"
	}
	for _, name := range s.memoryAliases() {
		if limit, found := s.aliasLimit(name); found {
			lines += "\t[" + name + ": " + inUnits(limit) + "]\n"
		}
	}
	if lines != "" {
		s.out.WriteString("capped-memory:\n" + lines)
	}
}
