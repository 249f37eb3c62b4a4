package zonecfg

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
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
