package scf

import "strings"

// Match is what a pattern of a command line stands for.
type Match struct {
	Entity
	Group, Property string // of an FMRI with /:properties/ behind it
}

// Matches resolves a pattern as scf_walk_fmri does
// (usr/src/lib/libscf/common/midlevel.c): a full FMRI, an abbreviation (the
// end of the name, cut at a slash, with or without the instance), or a glob
// over full names. A full FMRI of a service stands for the service if services
// is set, else for its instances; abbreviations stand for instances.
func (r *Repository) Matches(pattern string, services bool) []Match {
	if strings.HasPrefix(pattern, "svc:") && !strings.ContainsAny(pattern, "*?[") {
		return r.matchFMRI(pattern, services)
	}
	return r.matchInstances(func(service, instance string) bool {
		if !strings.ContainsAny(pattern, "*?[") {
			return abbreviates(pattern, service, instance)
		}
		glob := pattern
		if !strings.HasPrefix(glob, "svc:") {
			glob = "*" + glob
		}
		full := "svc:/" + service + ":" + instance
		return Glob(glob, full) || Glob(glob+":*", full)
	})
}

func (r *Repository) matchFMRI(pattern string, services bool) []Match {
	f, ok := ParseFMRI(pattern)
	s := r.Service(f.Service)
	if !ok || s == nil {
		return nil
	}
	if f.Instance != "" {
		i := s.Instance(f.Instance)
		if i == nil {
			return nil
		}
		return []Match{{Entity: Entity{Service: s, Instance: i}, Group: f.Group, Property: f.Property}}
	}
	if services {
		return []Match{{Entity: Entity{Service: s}, Group: f.Group, Property: f.Property}}
	}
	var out []Match
	for _, i := range s.Instances {
		out = append(out, Match{Entity: Entity{Service: s, Instance: i}})
	}
	return out
}

func (r *Repository) matchInstances(matches func(service, instance string) bool) []Match {
	var out []Match
	for _, s := range r.Services {
		for _, i := range s.Instances {
			if matches(s.Name, i.Name) {
				out = append(out, Match{Entity: Entity{Service: s, Instance: i}})
			}
		}
	}
	return out
}

// abbreviates says whether the pattern is the end of the name.
func abbreviates(pattern, service, instance string) bool {
	pattern = strings.TrimPrefix(pattern, "/")
	want, wantInstance, has := strings.Cut(pattern, ":")
	if has && wantInstance != instance {
		return false
	}
	if want == service || strings.HasSuffix(service, "/"+want) {
		return want != ""
	}
	return !has && want == instance
}

// Glob is fnmatch(3C) without flags: * and ? match slashes too.
func Glob(pattern, name string) bool {
	for len(pattern) > 0 {
		switch pattern[0] {
		case '*':
			for n := 0; n <= len(name); n++ {
				if Glob(pattern[1:], name[n:]) {
					return true
				}
			}
			return false
		case '?':
			if name == "" {
				return false
			}
			pattern, name = pattern[1:], name[1:]
		case '[':
			end := strings.IndexByte(pattern[1:], ']')
			if end < 1 || name == "" || !inClass(pattern[1:1+end], name[0]) {
				return false
			}
			pattern, name = pattern[end+2:], name[1:]
		default:
			if name == "" || pattern[0] != name[0] {
				return false
			}
			pattern, name = pattern[1:], name[1:]
		}
	}
	return name == ""
}

func inClass(class string, c byte) bool {
	negated := class[0] == '!' || class[0] == '^'
	if negated {
		class = class[1:]
	}
	found := false
	for i := 0; i < len(class); i++ {
		if i+2 < len(class) && class[i+1] == '-' {
			found = found || class[i] <= c && c <= class[i+2]
			i += 2
			continue
		}
		found = found || class[i] == c
	}
	return found != negated
}
