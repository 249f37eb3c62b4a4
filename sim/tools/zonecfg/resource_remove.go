package zonecfg

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// remove drops a resource, or in one drops a value of a property.
func (s *cfgSession) remove(st cfgStatement) {
	if s.readOnly() {
		return
	}
	if !s.global {
		s.removeProperty(st)
		return
	}
	if st.resource == "" {
		s.longUsage("remove")
		return
	}
	forced := false
	if len(st.args) > 0 {
		if forced = st.args[0] == "-F"; !forced {
			s.shortUsage("remove")
			return
		}
	}
	if !s.initialize(true) {
		return
	}
	switch {
	case slices.Contains([]string{"dedicated-cpu", "capped-cpu", "capped-memory", "security-flags"}, st.resource):
		s.removeOnly(st.resource)
	case len(st.props) > 0:
		if i, ok := s.lookup(st); ok {
			s.config.Resources = slices.Delete(s.config.Resources, i, i+1)
			s.changed = true
		}
	default:
		s.removeAll(st.resource, forced)
	}
}

func (s *cfgSession) removeAll(kind string, forced bool) {
	switch n := len(s.config.All(kind)); {
	case n == 0:
		s.fail("remove %s: %s", kind, zNoEntry)
	case n > 1 && !forced && !s.interactive:
		s.fail("There are multiple instances of this resource.  Either qualify the resource to\n" +
			"remove a single instance or use the -F option to remove all instances.")
	case n > 1 && !forced:
		s.ask()
		s.zerr("Resource incomplete.")
	default:
		s.drop(kind)
	}
}

func (s *cfgSession) drop(kind string) {
	s.config.Resources = slices.DeleteFunc(s.config.Resources, func(r world.Resource) bool { return r.Type == kind })
	s.changed = true
}

// removeOnly drops a resource of which there is one at most.
func (s *cfgSession) removeOnly(kind string) {
	if !s.hasResource(kind) && !s.aliased(kind) {
		problem := zNoResourceType
		if kind == "dedicated-cpu" || kind == "security-flags" {
			problem = zNoEntry
		}
		s.fail("remove %s: %s", kind, problem)
		return
	}
	s.drop(kind)
	for _, property := range map[string][]string{"capped-cpu": {"ncpus"}, "capped-memory": s.memoryAliases()}[kind] {
		if _, problem := s.aliasLimit(property); problem == "" {
			s.dropAlias(property)
		}
	}
}

// removeProperty drops options of a fs, a value of a rctl, a net's router.
func (s *cfgSession) removeProperty(st cfgStatement) {
	if len(st.props) != 1 {
		s.longUsage("remove")
		return
	}
	if !s.initialize(true) {
		return
	}
	p := st.props[0]
	var drop []string
	switch s.kind + " " + p.name {
	case "net defrouter":
		s.work.Set("defrouter")
		return
	case "fs options":
		if p.value.kind == "complex" {
			s.fail("A simple or list value was expected here.")
			return
		}
		drop = simpleValues(p.value)
	case "rctl value":
		if p.value.kind != "complex" {
			s.fail("A complex value was expected here.")
			return
		}
		var v zones.RctlValue
		for _, pair := range p.value.pair {
			v = zones.ParseRctlValue(strings.TrimSuffix(v.String(), ")") + "," + pair.name + "=" + pair.value.text + ")")
		}
		drop = []string{v.String()}
	default:
		s.noProperty("remove", p.name)
		return
	}
	for _, value := range drop {
		have := s.work.Values(p.name)
		i := slices.Index(have, value)
		if i < 0 {
			s.fail("%s: %s", p.name, zNoPropertyID)
			continue
		}
		s.work.Set(p.name, slices.Delete(slices.Clone(have), i, i+1)...)
	}
}
