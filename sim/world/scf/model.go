// Package scf models what svc.configd(8) keeps: services and instances, their
// property groups, and the running snapshot of each instance. It knows how
// manifests and profiles get in, and nothing of who runs the services: that is
// svc.startd's work, in package world.
//
// The rules are those of libscf(3LIB), svccfg(8) and smf(7); where a source
// file decides, it is named.
package scf

import (
	"slices"
	"strings"
)

// Repository is the contents of one repository file.
type Repository struct {
	Services []*Service `json:"services"`
}

// Service is a service: what all of its instances share.
type Service struct {
	Name      string      `json:"name"` // milestone/single-user
	Groups    Groups      `json:"groups,omitempty"`
	Instances []*Instance `json:"instances,omitempty"`
}

// Instance is one instance of a service.
type Instance struct {
	Name   string `json:"name"`
	Groups Groups `json:"groups,omitempty"`
	// Running is the snapshot that methods and svcprop(1) read; nil before the
	// restarter has taken one.
	Running *Snapshot `json:"running,omitempty"`
}

// Snapshot is an instance's composed property groups of a moment.
type Snapshot struct {
	// Live says that nothing has changed since: Groups is then empty, and the
	// snapshot reads as the instance does.
	Live   bool   `json:"live,omitempty"`
	Groups Groups `json:"groups,omitempty"`
}

// Groups are property groups in the order of their making.
type Groups []*Group

// Group is a property group.
type Group struct {
	Name string `json:"name"`
	Type string `json:"type"` // application, framework, method, dependency, template, …
	// Transient groups are lost when svc.configd restarts (SCF_PG_FLAG_NONPERSISTENT).
	Transient  bool        `json:"transient,omitempty"`
	Properties []*Property `json:"properties,omitempty"`
}

// Property is a typed property with any number of values.
type Property struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Values []string `json:"values"`
	// Imported is what a manifest last gave, if an administrator has changed it
	// since: a newer manifest then leaves the property alone.
	Imported []string `json:"imported,omitempty"`
}

// Find is the group of this name, or nil.
func (g Groups) Find(name string) *Group {
	for _, group := range g {
		if group.Name == name {
			return group
		}
	}
	return nil
}

// Property is the property of this name, or nil.
func (g *Group) Property(name string) *Property {
	if g == nil {
		return nil
	}
	for _, p := range g.Properties {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Value is the first value of group/property, or "".
func (g Groups) Value(group, property string) string {
	if p := g.Find(group).Property(property); p != nil && len(p.Values) > 0 {
		return p.Values[0]
	}
	return ""
}

// Service is the service of this name (without svc:/), or nil.
func (r *Repository) Service(name string) *Service {
	for _, s := range r.Services {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Instance is the instance of this name, or nil.
func (s *Service) Instance(name string) *Instance {
	if s == nil {
		return nil
	}
	for _, i := range s.Instances {
		if i.Name == name {
			return i
		}
	}
	return nil
}

// FMRI is the service's full name.
func (s *Service) FMRI() string { return "svc:/" + s.Name }

// InstanceFMRI is the full name of one of the service's instances.
func (s *Service) InstanceFMRI(i *Instance) string { return "svc:/" + s.Name + ":" + i.Name }

// Lookup finds an instance by its full name.
func (r *Repository) Lookup(fmri string) (Entity, bool) {
	f, ok := ParseFMRI(fmri)
	if found := r.Instances(f); ok && f.Instance != "" && len(found) > 0 {
		return found[0], true
	}
	return Entity{}, false
}

// Instances are those that a full name stands for: the instance itself, or all of a
// service.
func (r *Repository) Instances(f FMRI) []Entity {
	return slices.DeleteFunc(r.Entities(), func(e Entity) bool {
		return e.Service.Name != f.Service || f.Instance != "" && e.Instance.Name != f.Instance
	})
}

// Entities are all instances.
func (r *Repository) Entities() (all []Entity) {
	for _, s := range r.Services {
		for _, i := range s.Instances {
			all = append(all, Entity{s, i})
		}
	}
	return all
}

// Composed is what an instance reads: its own properties over those of its
// service, property by property (libscf's composed property groups).
func (s *Service) Composed(i *Instance) Groups {
	out := make(Groups, 0, len(i.Groups)+len(s.Groups))
	for _, own := range i.Groups {
		shared := s.Groups.Find(own.Name)
		if shared == nil || shared.Type != own.Type {
			out = append(out, own)
			continue
		}
		both := *own
		both.Properties = slices.Clone(own.Properties)
		for _, p := range shared.Properties {
			if own.Property(p.Name) == nil {
				both.Properties = append(both.Properties, p)
			}
		}
		out = append(out, &both)
	}
	for _, shared := range s.Groups {
		if i.Groups.Find(shared.Name) == nil {
			out = append(out, shared)
		}
	}
	return out
}

// Snapshot is the instance's running snapshot; what it reads now if none was
// taken (svcprop.c, get_snapshot).
func (s *Service) Snapshot(i *Instance) Groups {
	if i.Running == nil || i.Running.Live {
		return s.Composed(i)
	}
	return i.Running.Groups
}

// clone copies groups, so that later edits do not reach the copy.
func (g Groups) clone() Groups {
	out := make(Groups, len(g))
	for n, group := range g {
		c := *group
		c.Properties = make([]*Property, len(group.Properties))
		for m, p := range group.Properties {
			pc := *p
			pc.Values = slices.Clone(p.Values)
			c.Properties[m] = &pc
		}
		out[n] = &c
	}
	return out
}

// FMRI is a parsed service FMRI.
type FMRI struct{ Service, Instance string }

// ParseFMRI reads svc:/SERVICE[:INSTANCE]. What scf_parse_svc_fmri(3SCF) takes
// beyond that, a scope and a property, is not simulated.
func ParseFMRI(text string) (FMRI, bool) {
	rest, ok := strings.CutPrefix(text, "svc:/")
	service, instance, has := strings.Cut(rest, ":")
	return FMRI{service, instance}, ok && ValidServiceName(service) && (!has || ValidName(instance))
}

// ValidServiceName says whether the name may be a service's: names joined by slashes.
func ValidServiceName(name string) bool {
	return !slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return !ValidName(part) })
}

// ValidName says whether the name may be an instance's, a property group's or
// a property's (uu_check_name with UU_NAME_DOMAIN): a letter, then letters,
// digits, _ and -. The domain and comma that may stand before it are not simulated.
func ValidName(name string) bool {
	for n, r := range name {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (n == 0 || !(r >= '0' && r <= '9' || r == '-' || r == '_')) {
			return false
		}
	}
	return name != ""
}
