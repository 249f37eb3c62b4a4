package scf

import "slices"

// Entity is a service, or one of its instances: what svccfg(8) selects and edits.
type Entity struct {
	Service  *Service
	Instance *Instance // nil: the service itself
}

// FMRI is the entity's full name.
func (e Entity) FMRI() string {
	if e.Instance != nil {
		return e.Service.InstanceFMRI(e.Instance)
	}
	return e.Service.FMRI()
}

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

// AddGroup makes a property group. False: there is one of that name.
func (e Entity) AddGroup(name, typ string, transient bool) bool {
	groups := e.Groups()
	if groups.Find(name) != nil {
		return false
	}
	e.keep()
	*groups = append(*groups, &Group{Name: name, Type: typ, Transient: transient})
	return true
}

// DeleteGroup removes a property group. False: there is none.
func (e Entity) DeleteGroup(name string) bool {
	groups := e.Groups()
	if groups.Find(name) == nil {
		return false
	}
	e.keep()
	*groups = slices.DeleteFunc(*groups, func(g *Group) bool { return g.Name == name })
	return true
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
	e.AddGroup(group, groupType, false)
	e.Set(group, name, typ, values...)
}

// Refresh takes the running snapshot of an instance.
func (i *Instance) Refresh() { i.Running = &Snapshot{Live: true} }

// AddService makes an empty service. False: there is one of that name.
func (r *Repository) AddService(name string) bool {
	if r.Service(name) != nil {
		return false
	}
	r.Services = append(r.Services, &Service{Name: name})
	return true
}

// AddInstance makes an empty instance. False: there is one of that name.
func (s *Service) AddInstance(name string) bool {
	if s.Instance(name) != nil {
		return false
	}
	s.Instances = append(s.Instances, &Instance{Name: name})
	return true
}

// DropTransient removes the transient groups, as a restart of svc.configd
// does. False: there were none.
func (r *Repository) DropTransient() bool {
	dropped := false
	drop := func(groups *Groups) {
		n := len(*groups)
		*groups = slices.DeleteFunc(*groups, func(g *Group) bool { return g.Transient })
		dropped = dropped || len(*groups) < n
	}
	for _, s := range r.Services {
		drop(&s.Groups)
		for _, i := range s.Instances {
			drop(&i.Groups)
		}
	}
	return dropped
}

// DeleteService removes a service with its instances.
func (r *Repository) DeleteService(name string) {
	r.Services = slices.DeleteFunc(r.Services, func(s *Service) bool { return s.Name == name })
}
