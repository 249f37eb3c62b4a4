package zonecfg

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file ends the specification of a resource (end_func in zonecfg.c): what
// a resource must have and may not repeat.

func (s *cfgSession) end(st cfgStatement) {
	s.options(st, "")
	if s.global {
		s.scopeUsage("end")
		return
	}
	if !s.complete() || s.old == nil && s.repeated() {
		s.sawError = true
		return
	}
	if s.old != nil {
		i := slices.IndexFunc(s.config.Resources, func(r world.Resource) bool { return equalResources(&r, s.old) })
		s.config.Resources = slices.Delete(s.config.Resources, i, i+1)
	}
	if len(s.work.Properties) > 0 {
		s.config.Resources = append(s.config.Resources, s.work.Clone())
	}
	s.global, s.kind, s.work, s.old, s.changed = true, "", nil, nil, true
}

func equalResources(a, b *world.Resource) bool {
	return a.Type == b.Type && slices.EqualFunc(a.Properties, b.Properties, func(x, y world.Property) bool {
		return x.Name == y.Name && slices.Equal(x.Values, y.Values)
	})
}

// complete says what is missing or wrong.
func (s *cfgSession) complete() bool {
	ok := true
	need := func(names ...string) {
		for _, name := range names {
			if s.work.Get(name) == "" {
				s.zerr("%s not specified", name)
				ok = false
			}
		}
	}
	switch s.kind {
	case "fs":
		need("dir")
		ok = s.absolute("dir") && ok
		need("special")
		ok = s.absolute("raw") && ok
		need("type")
	case "net":
		need("physical")
	case "device":
		need("match")
	case "rctl":
		need("name")
		if len(s.work.Values("value")) == 0 {
			s.zerr("no value specified")
			ok = false
		}
	case "attr":
		need("name", "type", "value")
		ok = s.validAttr() && ok
	case "dataset":
		need("name")
	case "dedicated-cpu":
		need("ncpus")
	case "capped-cpu":
		_, found := s.aliasLimit("ncpus")
		cli.Simulated(found)
	case "capped-memory":
		return s.completeMemory()
	}
	return ok
}

func (s *cfgSession) absolute(name string) bool {
	if v := s.work.Get(name); v != "" && !strings.HasPrefix(v, "/") {
		s.zerr("%s %s is not an absolute path.", name, v)
		return false
	}
	return true
}

func (s *cfgSession) completeMemory() bool {
	physical, _ := strconv.ParseUint(s.work.Get("physical"), 10, 64)
	if limit, found := s.aliasLimit("physical"); found {
		physical = limit
	}
	locked, found := s.aliasLimit("locked")
	cli.Simulated(physical == 0 || !found || physical >= locked)
	if physical == 0 && !s.hasMemoryCap() {
		s.zerr("No property was specified.  One of physical, swap or locked is required.")
		return false
	}
	return true
}

// validAttr checks the name and that the value is of the type.
func (s *cfgSession) validAttr() bool {
	name, kind, value := s.work.Get("name"), s.work.Get("type"), s.work.Get("value")
	ok := true
	cli.Simulated(name != "" && strings.Contains(alnum, name[:1]))
	if strings.Trim(name, alnum+"-.") != "" {
		s.zerr("Invalid attr name %s: can only contain alpha-numeric characters, plus '-' and '.'.", name)
		ok = false
	}
	var err error
	switch kind {
	case "string":
		if len(value) > 255 { // MAXNAMELEN
			err = strconv.ErrRange
		}
	case "boolean", "uint":
		cli.Simulated(false)
	case "int":
		_, err = strconv.ParseInt(value, 10, 64)
	default:
		s.zerr("invalid attr type '%s'", kind)
		return false
	}
	if err != nil {
		s.zerr("invalid attr value for type=%s", kind)
		return false
	}
	return ok
}

// repeated says that there is such a resource already.
func (s *cfgSession) repeated() bool {
	key := map[string]string{"fs": "dir", "device": "match", "rctl": "name", "attr": "name", "dataset": "name"}[s.kind]
	if s.kind == "net" {
		cli.Simulated(!s.repeatedNet())
	}
	if key == "" {
		return false
	}
	value := s.work.Get(key)
	if _, found := s.find(s.kind, []cfgProperty{{key, cfgValue{kind: "simple", text: value}}}); !found {
		return false
	}
	article := "A"
	if s.kind == "attr" {
		article = "An"
	}
	s.zerr("%s %s resource with the %s '%s' already exists.", article, s.kind, key, value)
	return true
}

// repeatedNet compares what the new resource says: one that says less than
// another is taken for it.
func (s *cfgSession) repeatedNet() bool {
	var props []cfgProperty
	cli.Simulated(s.config.IPType == "exclusive")
	for _, name := range []string{"physical", "allowed-address", "defrouter"} {
		if v := s.work.Get(name); v != "" {
			props = append(props, cfgProperty{name, cfgValue{kind: "simple", text: v}})
		}
	}
	_, found := s.find("net", props)
	return found
}
