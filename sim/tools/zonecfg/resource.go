package zonecfg

import (
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file adds, selects and removes resources.

// add begins a resource, or in one adds a value to a property.
func (s *cfgSession) add(st cfgStatement) {
	cli.Simulated(len(st.args) == 0)
	if !s.initialize(true) {
		return
	}
	if !s.global {
		cli.Simulated(len(st.props) == 1)
		s.addProperty(st.props[0])
		return
	}
	if there := s.shutOut(st.resource); there != "" {
		s.zerr("The %s resource already exists.", there) // that does not count as an error
		return
	}
	cli.Simulated(s.addable(st.resource))
	s.global, s.kind, s.old = false, st.resource, nil
	s.work = &world.Resource{Type: st.resource}
}

// shutOut is the resource that keeps one of processors from being added: the two do not go
// together, and each is there once (add_resource in zonecfg.c).
func (s *cfgSession) shutOut(kind string) string {
	if kind != "dedicated-cpu" && kind != "capped-cpu" {
		return ""
	}
	if len(s.config.All("dedicated-cpu")) > 0 {
		return "dedicated-cpu"
	}
	if _, capped := s.aliasLimit("ncpus"); capped {
		return "capped-cpu"
	}
	return ""
}

// addable says whether a resource is simulated, and may be there once more.
func (s *cfgSession) addable(kind string) bool {
	switch kind {
	case "dedicated-cpu":
		return s.config.Globals["pool"] == ""
	case "capped-memory":
		return len(s.config.All(kind)) == 0 && !s.hasMemoryCap()
	}
	return !slices.Contains([]string{"", "admin", "security-flags"}, kind)
}

// addProperty adds to the options of a fs or the values of a rctl.
func (s *cfgSession) addProperty(p cfgProperty) {
	switch s.kind + " " + p.name {
	case "fs options":
		cli.Simulated(p.value.kind != "complex")
		s.work.Set("options", append(slices.Clone(s.work.Values("options")), simpleValues(p.value)...)...)
	case "rctl value":
		cli.Simulated(p.value.kind == "complex")
		s.addRctlValue(p.value)
	default:
		cli.Simulated(false)
	}
}

// simpleValues are the texts of a simple value or of a list of them.
func simpleValues(v cfgValue) []string {
	if v.kind == "simple" {
		return []string{v.text}
	}
	var texts []string
	for _, piece := range v.list {
		cli.Simulated(piece.kind == "simple")
		texts = append(texts, piece.text)
	}
	return texts
}

// find looks for the one resource that has all these properties.
func (s *cfgSession) find(kind string, props []cfgProperty) (index int, found bool) {
	for i := range s.config.Resources {
		if r := &s.config.Resources[i]; r.Type == kind && hasAll(r, props) {
			cli.Simulated(!found)
			index, found = i, true
		}
	}
	return index, found
}

func hasAll(r *world.Resource, props []cfgProperty) bool {
	return !slices.ContainsFunc(props, func(p cfgProperty) bool {
		// A prefix length on one side only does not count (zonecfg_same_net_address).
		cli.Simulated(p.name != "address" && p.name != "allowed-address" && p.name != "defrouter")
		return r.Get(p.name) != p.value.text
	})
}

// lookup finds the resource that a command names, and says what is wrong with
// its name.
func (s *cfgSession) lookup(st cfgStatement) (int, bool) {
	for _, p := range st.props {
		cli.Simulated(p.value.kind == "simple" && slices.Contains(s.words.Properties[st.resource], p.name) && p.name != "options")
	}
	i, found := s.find(st.resource, st.props)
	if !found {
		s.fail("%s %s: %s", st.name, st.resource, zNoResourceID)
	}
	return i, found
}

// selectResource takes a resource up again.
func (s *cfgSession) selectResource(st cfgStatement) {
	cli.Simulated(s.global && !slices.Contains(lone(), st.resource))
	if !s.initialize(true) {
		return
	}
	i, ok := s.lookup(st)
	if !ok {
		return
	}
	s.global, s.kind, s.old = false, st.resource, &s.config.Resources[i]
	work := s.old.Clone()
	s.work = &work
}

// remove drops a resource, or in one drops options of a fs.
func (s *cfgSession) remove(st cfgStatement) {
	if !s.initialize(true) {
		return
	}
	if !s.global {
		s.removeOptions(st)
		return
	}
	if st.resource == "capped-cpu" {
		s.removeCap()
		return
	}
	cli.Simulated(st.resource != "" && !slices.Contains(lone(), st.resource))
	if len(st.props) > 0 {
		if i, ok := s.lookup(st); ok {
			s.config.Resources = slices.Delete(s.config.Resources, i, i+1)
			s.changed = true
		}
		return
	}
	n := len(s.config.All(st.resource))
	forced := len(st.args) > 0
	cli.Simulated(n != 1 && !s.interactive && (!forced || n == 0 && st.args[0] == "-F"))
	if n == 0 {
		s.fail("remove %s: %s", st.resource, zNoEntry)
		return
	}
	s.fail("There are multiple instances of this resource.  Either qualify the resource to\n" +
		"remove a single instance or use the -F option to remove all instances.")
}

// removeCap is remove_pcap in zonecfg.c.
func (s *cfgSession) removeCap() {
	if _, found := s.aliasLimit("ncpus"); !found {
		s.fail("remove capped-cpu: No such resource type")
		return
	}
	s.config.Resources = slices.DeleteFunc(s.config.Resources, func(r world.Resource) bool { return r.Type == "rctl" && r.Get("name") == "zone.cpu-cap" })
	s.changed = true
}

func (s *cfgSession) removeOptions(st cfgStatement) {
	cli.Simulated(s.kind == "fs" && len(st.props) == 1 && st.props[0].name == "options" && st.props[0].value.kind != "complex")
	for _, value := range simpleValues(st.props[0].value) {
		have := s.work.Values("options")
		i := slices.Index(have, value)
		if i < 0 {
			s.fail("options: %s", zNoPropertyID)
			continue
		}
		s.work.Set("options", slices.Delete(slices.Clone(have), i, i+1)...)
	}
}
