package scf

import "slices"

// Entity is a service, or one of its instances: what svccfg(8) selects and edits.
type Entity struct {
	Service  *Service
	Instance *Instance // nil: the service itself
}

// FMRI is the instance's full name.
func (e Entity) FMRI() string { return e.Service.InstanceFMRI(e.Instance) }

// Groups are the entity's own property groups, not composed.
func (e Entity) Groups() *Groups {
	if e.Instance != nil {
		return &e.Instance.Groups
	}
	return &e.Service.Groups
}

// keep gives every instance that sees the entity a snapshot of its own before
// the entity changes.
func (e Entity) keep() {
	for _, i := range e.Service.Instances {
		if (e.Instance == nil || e.Instance == i) && i.Running != nil && i.Running.Live {
			*i.Running = Snapshot{Groups: e.Service.Composed(i).clone()}
		}
	}
}

// AddGroup makes a property group unless there is one of that name.
func (e Entity) AddGroup(name, typ string) {
	if groups := e.Groups(); groups.Find(name) == nil {
		e.keep()
		*groups = append(*groups, &Group{Name: name, Type: typ})
	}
}

// Set gives a property of an existing group a type and values, and makes it if
// it does not exist. It is an administrator's change: see Property.Imported.
func (e Entity) Set(group, name, typ string, values ...string) {
	e.keep()
	g := e.Groups().Find(group)
	p := g.Property(name)
	if p == nil {
		g.Properties = append(g.Properties, &Property{Name: name, Type: typ, Values: values})
		return
	}
	if p.Imported == nil && !slices.Equal(p.Values, values) {
		p.Imported = p.Values
	}
	p.Type, p.Values = typ, values
}

// Ensure is AddGroup followed by Set, whatever was there.
func (e Entity) Ensure(group, groupType, name, typ string, values ...string) {
	e.AddGroup(group, groupType)
	e.Set(group, name, typ, values...)
}

// Refresh takes the running snapshot of an instance.
func (i *Instance) Refresh() { i.Running = &Snapshot{Live: true} }

// AddService makes an empty service unless there is one of that name.
func (r *Repository) AddService(name string) {
	if r.Service(name) == nil {
		r.Services = append(r.Services, &Service{Name: name})
	}
}

// AddInstance makes an empty instance unless there is one of that name.
func (s *Service) AddInstance(name string) {
	if s.Instance(name) == nil {
		s.Instances = append(s.Instances, &Instance{Name: name})
	}
}
