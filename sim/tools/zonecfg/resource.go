package zonecfg

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// This file adds, selects, removes and ends resources.

// add begins a resource, or in one adds a value to a property.
func (s *cfgSession) add(st cfgStatement) {
	if len(st.args) > 0 {
		if s.options(st, "?") != nil {
			s.shortUsage("add")
		}
		return
	}
	if s.readOnly() || !s.initialize(true) {
		return
	}
	if !s.global {
		if len(st.props) != 1 {
			s.longUsage("add")
			return
		}
		s.addProperty(st.props[0])
		return
	}
	switch {
	case st.resource == "":
		s.longUsage("add")
	case s.isGlobal && slices.Contains([]string{"fs", "net", "device", "attr", "dataset"}, st.resource):
		s.fail("Cannot add a %s resource to the global zone.", st.resource)
	case s.addable(st.resource):
		s.global, s.kind, s.old = false, st.resource, nil
		s.work = &world.Resource{Type: st.resource}
	}
}

// addable says whether a resource may be there once more. That one of which
// there can be only one exists already is said, but does not count as an error
// (add_resource).
func (s *cfgSession) addable(kind string) bool {
	exists := func(what string) bool {
		s.zerr("The %s resource already exists.", what)
		return false
	}
	_, cap := s.aliasLimit("ncpus")
	switch kind {
	case "dedicated-cpu":
		switch {
		case s.hasResource(kind):
			return exists(kind)
		case cap != zNoEntry:
			return exists("capped-cpu")
		case s.config.Globals["pool"] != "":
			s.zerr("The pool property is already set.  A persistent pool is incompatible with\nthe dedicated-cpu resource.")
			return false
		}
	case "capped-cpu":
		switch {
		case s.hasResource("dedicated-cpu"):
			return exists("dedicated-cpu")
		case cap == zAliasDisallow:
			s.zerr("capped-cpu: %s", zAliasDisallow)
			return false
		case cap == "":
			return exists(kind)
		}
	case "capped-memory":
		if s.hasResource(kind) || s.hasMemoryCap() {
			s.zerr("The capped-memory resource or a related resource control already exists.")
			return false
		}
	case "security-flags":
		if s.hasResource(kind) {
			return exists(kind)
		}
	}
	return true
}

// addProperty adds to the options of a fs or the values of a rctl.
func (s *cfgSession) addProperty(p cfgProperty) {
	switch {
	case s.kind == "fs" && p.name != "options", s.kind == "rctl" && p.name != "value":
		s.noProperty("add", p.name)
	case s.kind == "fs" && p.value.kind == "complex":
		s.fail("A simple or list value was expected here.")
	case s.kind == "rctl" && p.value.kind == "simple":
		s.fail("A complex or list value was expected here.")
	case s.kind == "fs":
		s.work.Set("options", append(slices.Clone(s.work.Values("options")), simpleValues(p.value)...)...)
	case s.kind == "rctl" && p.value.kind == "complex":
		s.addRctlValue(p.value)
	case s.kind == "rctl":
		for _, v := range p.value.list {
			s.addRctlValue(v)
		}
	default:
		s.fail("%s: %s", s.kind, zNoResourceType)
		s.longUsage("add")
		s.usage(&s.err, cfgHelpResources, false)
	}
}

// simpleValues are the texts of a simple value or of a list up to the first
// that is not simple.
func simpleValues(v cfgValue) []string {
	if v.kind == "simple" {
		return []string{v.text}
	}
	var texts []string
	for _, piece := range v.list {
		if piece.kind != "simple" {
			break
		}
		texts = append(texts, piece.text)
	}
	return texts
}

// find looks for the one resource that has all these properties; the problem
// is zNoResourceID or zNotSpecific.
func (s *cfgSession) find(kind string, props []cfgProperty) (index int, problem string) {
	index = -1
	if len(props) == 0 {
		return index, zNotSpecific
	}
	for i := range s.config.Resources {
		r := &s.config.Resources[i]
		if r.Type != kind || !hasAll(r, props) {
			continue
		}
		if index >= 0 {
			return -1, zNotSpecific
		}
		index = i
	}
	if index < 0 {
		return index, zNoResourceID
	}
	return index, ""
}

func hasAll(r *world.Resource, props []cfgProperty) bool {
	return !slices.ContainsFunc(props, func(p cfgProperty) bool {
		have, want := r.Get(p.name), p.value.text
		if p.name == "address" || p.name == "allowed-address" || p.name == "defrouter" {
			return !sameAddress(have, want)
		}
		return have != want
	})
}

// sameAddress is zonecfg_same_net_address: a prefix length on one side only
// does not count.
func sameAddress(a, b string) bool {
	x, _, xs := strings.Cut(a, "/")
	y, _, ys := strings.Cut(b, "/")
	return a == b || xs != ys && x == y
}

// lookup finds the resource that a command names, and says what is wrong with
// its name.
func (s *cfgSession) lookup(st cfgStatement) (int, bool) {
	for _, p := range st.props {
		if p.value.kind != "simple" {
			s.fail("A simple value was expected here.")
			s.fail("%s %s: %s", st.name, st.resource, zNotSpecific)
			return -1, false
		}
		if !slices.Contains(cfgPropertiesOf(st.resource), p.name) || p.name == "options" {
			s.fail("%s: %s", p.name, zNoPropertyType)
			s.fail("%s %s: %s", st.name, st.resource, zNotSpecific)
			return -1, false
		}
	}
	i, problem := s.find(st.resource, st.props)
	if problem != "" {
		s.fail("%s %s: %s", st.name, st.resource, problem)
		return -1, false
	}
	return i, true
}

// selectResource takes a resource up again.
func (s *cfgSession) selectResource(st cfgStatement) {
	if s.readOnly() {
		return
	}
	if !s.global {
		s.scopeUsage("select")
		return
	}
	if !s.initialize(true) {
		return
	}
	i := -1
	switch st.resource {
	case "dedicated-cpu", "capped-memory", "capped-cpu", "security-flags":
		i = slices.IndexFunc(s.config.Resources, func(r world.Resource) bool { return r.Type == st.resource })
		if i < 0 && !s.aliased(st.resource) {
			s.fail("select %s: %s", st.resource, map[bool]string{true: zNoResourceType, false: zNoEntry}[st.resource == "capped-memory"])
			return
		}
	default:
		var ok bool
		if i, ok = s.lookup(st); !ok {
			return
		}
	}
	s.global, s.kind = false, st.resource
	s.work, s.old = &world.Resource{Type: st.resource}, nil
	if i >= 0 {
		s.old = &s.config.Resources[i]
		work := s.old.Clone()
		s.work = &work
	}
}

// aliased says whether a resource is there as a resource control.
func (s *cfgSession) aliased(kind string) bool {
	_, problem := s.aliasLimit("ncpus")
	return kind == "capped-cpu" && problem == "" || kind == "capped-memory" && s.hasMemoryCap()
}

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
