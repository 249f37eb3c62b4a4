package tools

import (
	"fmt"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// The messages of lscf_init() in usr/src/cmd/svc/svccfg/svccfg_libscf.c.
const (
	svccfgNotSelected = "An entity is not selected.\n"
	svccfgNoGroup     = "No such property group \"%s\".\n"
	svccfgBadGroup    = "Invalid property group name \"%s\".\n"
	svccfgBadProperty = "Invalid property name \"%s\".\n"
)

// resolve finds an entity as lscf_select does: relative to the selection, or
// by a pattern that is not ambiguous. False: the complaint is made.
func (s *svccfg) resolve(name string) (scf.Entity, bool, error) {
	switch {
	case s.selected.Instance != nil:
	case s.selected.Service != nil:
		if i := s.selected.Service.Instance(name); i != nil {
			return scf.Entity{Service: s.selected.Service, Instance: i}, true, nil
		}
	default:
		if service := s.Service(name); service != nil {
			return scf.Entity{Service: service}, true, nil
		}
	}
	matches := s.Matches(name, true)
	switch {
	case len(matches) == 0:
		return scf.Entity{}, false, s.fail(noInstSvc, name)
	case len(matches) > 1:
		text := fmt.Sprintf(severalMatch, name)
		for _, m := range matches {
			text += "    " + m.FMRI() + "\n"
		}
		return scf.Entity{}, false, s.fail("%s", text)
	}
	return matches[0].Entity, true, nil
}

func (s *svccfg) selectEntity(name string) error {
	switch name {
	case "svc:":
		s.selected = scf.Entity{}
		return nil
	case ":properties":
		return s.fail(":properties is not an entity.  Try 'listprop' to list properties.\n")
	}
	e, ok, err := s.resolve(name)
	if ok {
		s.selected = e
	}
	return err
}

func (s *svccfg) unselect() error {
	switch {
	case s.selected.Instance != nil:
		s.selected.Instance = nil
	case s.selected.Service != nil:
		s.selected.Service = nil
	default:
		return s.fail("Cannot unselect at scope level.\n")
	}
	return nil
}

// list is lscf_list().
func (s *svccfg) list(pattern string) error {
	show := func(name string) {
		if pattern == "" || scf.Glob(pattern, name) {
			s.out.Stdout += name + "\n"
		}
	}
	switch {
	case s.selected.Instance != nil:
		s.out.Stdout += ":properties\n"
	case s.selected.Service != nil:
		s.out.Stdout += ":properties\n"
		for _, i := range s.selected.Service.Instances {
			show(i.Name)
		}
	default:
		for _, service := range s.Services {
			show(service.Name)
		}
	}
	return nil
}

// add is lscf_add().
func (s *svccfg) add(name string) error {
	switch {
	case s.selected.Instance != nil:
		return s.fail("Cannot add entities to an instance.\n")
	case s.selected.Service != nil:
		if !scf.ValidName(name) {
			return s.fail("Invalid name.\n")
		}
		if !s.selected.Service.AddInstance(name) {
			return s.fail("Instance already exists.\n")
		}
	default:
		if !scf.ValidServiceName(name) {
			return s.fail("Invalid name.\n")
		}
		if !s.AddService(name) {
			return s.fail("Service already exists.\n")
		}
	}
	s.changed = true
	return nil
}

// delete is lscf_delete(): a running instance only with -f.
func (s *svccfg) delete(name string, force bool) error {
	e, ok, err := s.resolve(name)
	if !ok {
		return err
	}
	instances := e.Service.Instances
	if e.Instance != nil {
		instances = []*scf.Instance{e.Instance}
	}
	for _, i := range instances {
		if !force && s.isRunning(e.Service.InstanceFMRI(i)) {
			return s.fail("Instance %s may be running.  Use delete -f if it is not.\n", e.Service.InstanceFMRI(i))
		}
	}
	if e.Instance != nil {
		e.Service.DeleteInstance(e.Instance.Name)
	} else {
		s.DeleteService(e.Service.Name)
	}
	s.changed = true
	return nil
}

// isRunning is inst_is_running(): online, degraded or offline.
func (s *svccfg) isRunning(fmri string) bool {
	if s.private != "" {
		return false
	}
	state, _ := s.tx.Service(s.zone, fmri).State(s.tx.Now)
	return state == world.Online || state == world.Degraded || state == world.Offline
}

// refreshSelected is lscf_refresh().
func (s *svccfg) refreshSelected() error {
	if s.selected.Instance == nil {
		return s.fail("Instance not selected.\n")
	}
	s.selected.Instance.Refresh()
	s.refresh[s.selected.FMRI()] = true
	s.changed = true
	return nil
}

func (s *svccfg) listSnapshots() error {
	switch {
	case s.selected.Instance == nil:
		return s.fail("Instance not selected.\n")
	case s.selected.Instance.Running != nil:
		s.out.Stdout += "running\n"
	}
	return nil
}

// set is engine_set().
func (s *svccfg) set(word string) error {
	switch word {
	case "":
		if !s.verbose {
			s.out.Stdout += "no"
		}
		s.out.Stdout += "verbose\n"
	case "-v":
		s.verbose = true
	case "-V":
		s.verbose = false
	default:
		s.complain("No non-flag arguments defined.\n")
	}
	return nil
}
