package world

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world/scf"
)

// This file is svc.startd's graph: who may start, who has to stop
// (usr/src/cmd/svc/startd/graph.c; smf(7), "Dependencies").

// configure reads an instance's configuration from its running snapshot.
func (s *Service) configure(e scf.Entity) {
	snapshot := e.Service.Snapshot(e.Instance)
	s.Enabled = enabledIn(e)
	s.Start = methodOf(snapshot, "start")
	s.Stop = methodOf(snapshot, "stop")
	s.Refresh = methodOf(snapshot, "refresh")
	s.Duration = snapshot.Value("startd", "duration")
	s.Restarter = ""
	if r := snapshot.Value("general", "restarter"); r != "" && r != restarterFMRI {
		s.Restarter = r
	}
	s.Depends = nil
	for _, g := range snapshot {
		if g.Type != "dependency" {
			continue
		}
		d := Dependency{
			Grouping:  groupValue(g, "grouping"),
			RestartOn: groupValue(g, "restart_on"),
			Type:      groupValue(g, "type"),
		}
		if p := g.Property("entities"); p != nil {
			d.FMRIs = p.Values
		}
		s.Depends = append(s.Depends, d)
	}
}

// enabledIn reads general/enabled, which needs no refresh to count.
func enabledIn(e scf.Entity) bool { return e.Instance.Groups.Value("general", "enabled") == "true" }

func methodOf(groups scf.Groups, name string) Method {
	g := groups.Find(name)
	if g == nil || g.Type != "method" {
		return Method{}
	}
	m := Method{Exec: groupValue(g, "exec")}
	if timeout, ok := scf.Normalize("count", groupValue(g, "timeout_seconds")); ok {
		m.Timeout = parseCount(timeout)
	}
	return m
}

func parseCount(digits string) uint64 {
	var n uint64
	for _, d := range digits {
		n = n*10 + uint64(d-'0')
	}
	return n
}

func groupValue(g *scf.Group, name string) string { return scf.Groups{g}.Value(g.Name, name) }

// instancesOf are the instances that a dependency's FMRI stands for.
func (r *Repository) instancesOf(fmri string) []*Service {
	f, ok := scf.ParseFMRI(fmri)
	if !ok {
		return nil
	}
	if f.Instance != "" {
		if s := r.Instances["svc:/"+f.Service+":"+f.Instance]; s != nil {
			return []*Service{s}
		}
		return nil
	}
	var out []*Service
	for _, name := range r.FMRIs() {
		if strings.HasPrefix(name, "svc:/"+f.Service+":") {
			out = append(out, r.Instances[name])
		}
	}
	return out
}

// up says whether one FMRI of a dependency is online.
func (tx *Tx) up(zone, fmri string) bool {
	if file, ok := strings.CutPrefix(fmri, "file://"); ok {
		_, err := tx.Files.Stat(tx.ZonePathOf(zone, strings.TrimPrefix(file, "localhost")))
		return err == nil
	}
	return slices.ContainsFunc(tx.Repository(zone).instancesOf(fmri), func(s *Service) bool {
		state, _ := s.State(tx.Now)
		return state == Online || state == Degraded
	})
}

// satisfied says whether a dependency lets the service run.
func (tx *Tx) satisfied(zone string, d Dependency) bool {
	up := func(fmri string) bool { return tx.up(zone, fmri) }
	switch d.Grouping {
	case "require_all":
		return !slices.ContainsFunc(d.FMRIs, func(f string) bool { return !up(f) })
	case "require_any":
		return len(d.FMRIs) == 0 || slices.ContainsFunc(d.FMRIs, up)
	case "optional_all":
		return !slices.ContainsFunc(d.FMRIs, func(f string) bool { return !up(f) && tx.mayComeUp(zone, f, nil) })
	case "exclude_all":
		return !slices.ContainsFunc(d.FMRIs, func(f string) bool { return up(f) || tx.mayComeUp(zone, f, nil) })
	}
	return false
}

// mayComeUp says whether an FMRI that is not online can get there by itself.
func (tx *Tx) mayComeUp(zone, fmri string, seen []string) bool {
	return slices.ContainsFunc(tx.Repository(zone).instancesOf(fmri), func(s *Service) bool {
		return tx.HasPotential(zone, s, seen)
	})
}

// HasPotential says whether an instance is online or can get there without an
// administrator (has_potential in usr/src/cmd/svc/svcadm/synch.c).
func (tx *Tx) HasPotential(zone string, s *Service, seen []string) bool {
	state, _ := s.State(tx.Now)
	switch {
	case state == Online || state == Degraded:
		return true
	case state == Maintenance || !tx.wanted(zone, s) || slices.Contains(seen, s.FMRI):
		return false
	}
	seen = append(slices.Clone(seen), s.FMRI)
	for _, d := range s.Depends {
		possible := func(f string) bool { return tx.up(zone, f) || tx.mayComeUp(zone, f, seen) }
		switch d.Grouping {
		case "require_all":
			if slices.ContainsFunc(d.FMRIs, func(f string) bool { return !possible(f) }) {
				return false
			}
		case "require_any":
			if len(d.FMRIs) > 0 && !slices.ContainsFunc(d.FMRIs, possible) {
				return false
			}
		}
	}
	return true
}

// wanted says whether an instance is to run: enabled, and part of the
// milestone that was chosen.
func (tx *Tx) wanted(zone string, s *Service) bool {
	r := tx.Repository(zone)
	switch {
	case !s.Wanted():
		return false
	case r.Milestone == "" || r.Milestone == "all" || s.FMRI == restarterFMRI || s.FMRI == earlyManifestImportFMRI:
		return true
	case r.Milestone == "none":
		return false
	}
	return r.supports(r.Milestone, s.FMRI, map[string]bool{})
}

// supports says whether fmri is the milestone or something that it depends on.
func (r *Repository) supports(milestone, fmri string, seen map[string]bool) bool {
	if milestone == fmri {
		return true
	}
	if seen[milestone] {
		return false
	}
	seen[milestone] = true
	s := r.Instances[milestone]
	if s == nil {
		return false
	}
	for _, d := range s.Depends {
		for _, f := range d.FMRIs {
			for _, on := range r.instancesOf(f) {
				if r.supports(on.FMRI, fmri, seen) {
					return true
				}
			}
		}
	}
	return false
}

// depth is how many start methods lie one behind the other on the way to an
// instance, its own included.
func (r *Repository) depth(s *Service, seen map[string]int) int {
	if n, ok := seen[s.FMRI]; ok {
		return n
	}
	seen[s.FMRI] = 0 // a cycle ends here
	deepest := 0
	for _, d := range s.Depends {
		for _, f := range d.FMRIs {
			for _, on := range r.instancesOf(f) {
				if on.Wanted() {
					deepest = max(deepest, r.depth(on, seen))
				}
			}
		}
	}
	if s.Start.Exec != "" {
		deepest++
	}
	seen[s.FMRI] = deepest
	return deepest
}

// evaluate lets every instance of a zone take the step that it can take now.
func (tx *Tx) evaluate(zone string) {
	r := tx.Repository(zone)
	if r == nil {
		return
	}
	for again := true; again; {
		again = false
		for _, fmri := range r.FMRIs() {
			if s := r.Instances[fmri]; s != nil && tx.step(zone, s) {
				again = true
			}
		}
	}
}

// step moves one instance. False: nothing to do.
func (tx *Tx) step(zone string, s *Service) bool {
	state, next := s.State(tx.Now)
	if next != "" || s.Restarter != "" || state == "" {
		return false
	}
	wanted := tx.wanted(zone, s)
	switch {
	case state == Uninitialized && wanted:
		tx.become(s, Offline, "", "")
	case (state == Uninitialized || state == Offline) && !wanted:
		tx.become(s, Disabled, "", "disable_request")
	case state == Disabled && wanted:
		tx.become(s, Offline, "", "enable_request")
	case state == Offline && tx.ready(zone, s):
		tx.start(zone, s)
	case (state == Online || state == Degraded) && !wanted:
		tx.stop(zone, s, Disabled, "disable_request", false)
	default:
		return false
	}
	return true
}

func (tx *Tx) ready(zone string, s *Service) bool {
	return !slices.ContainsFunc(s.Depends, func(d Dependency) bool { return !tx.satisfied(zone, d) })
}

// left stops the dependents of an instance that has left online, as far as
// their restart_on says so.
func (tx *Tx) left(zone string, gone *Service, failure bool) {
	r := tx.Repository(zone)
	for _, fmri := range r.FMRIs() {
		s := r.Instances[fmri]
		if state, next := s.State(tx.Now); next != "" || state != Online && state != Degraded {
			continue
		}
		for _, d := range s.Depends {
			concerns := slices.ContainsFunc(d.FMRIs, func(f string) bool { return slices.Contains(r.instancesOf(f), gone) })
			if concerns && restarts(d.RestartOn, failure) && !tx.satisfied(zone, d) {
				tx.stop(zone, s, Offline, "dependency_activity", false)
				break
			}
		}
	}
}

// restarts reads restart_on for a stop.
func restarts(on string, failure bool) bool {
	return on == "restart" || on == "refresh" || on == "error" && failure
}
