package smf

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
)

// This file is svc.startd's graph: who may start, who has to stop
// (usr/src/cmd/svc/startd/graph.c; smf(7), "Dependencies").

// configure reads an instance's configuration from its running snapshot.
func configure(s *world.Service, e scf.Entity) {
	snapshot := e.Service.Snapshot(e.Instance)
	s.Enabled = enabledIn(e)
	s.Start = methodOf(snapshot, "start")
	s.Stop = methodOf(snapshot, "stop")
	s.Refresh = methodOf(snapshot, "refresh")
	s.Duration = snapshot.Value("startd", "duration")
	s.Restarter = ""
	if r := snapshot.Value("general", "restarter"); r != "" && r != RestarterFMRI {
		s.Restarter = r
	}
	s.Depends = nil
	for _, g := range snapshot {
		if g.Type != "dependency" {
			continue
		}
		d := world.Dependency{
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

func methodOf(groups scf.Groups, name string) world.Method {
	g := groups.Find(name)
	if g == nil || g.Type != "method" {
		return world.Method{}
	}
	m := world.Method{Exec: groupValue(g, "exec")}
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
func instancesOf(r *world.Repository, fmri string) []*world.Service {
	f, ok := scf.ParseFMRI(fmri)
	if !ok {
		return nil
	}
	if f.Instance != "" {
		if s := r.Instances["svc:/"+f.Service+":"+f.Instance]; s != nil {
			return []*world.Service{s}
		}
		return nil
	}
	var out []*world.Service
	for _, name := range FMRIs(r) {
		if strings.HasPrefix(name, "svc:/"+f.Service+":") {
			out = append(out, r.Instances[name])
		}
	}
	return out
}

// up says whether one FMRI of a dependency is online.
func up(tx *world.Tx, zone, fmri string) bool {
	if file, ok := strings.CutPrefix(fmri, "file://"); ok {
		_, err := tx.Files.Stat(tx.ZonePathOf(zone, strings.TrimPrefix(file, "localhost")))
		return err == nil
	}
	return slices.ContainsFunc(instancesOf(Repository(tx, zone), fmri), func(s *world.Service) bool {
		state, _ := State(s, tx.Now)
		return state == Online || state == Degraded
	})
}

// satisfied says whether a dependency lets the service run.
func satisfied(tx *world.Tx, zone string, d world.Dependency) bool {
	up := func(fmri string) bool { return up(tx, zone, fmri) }
	switch d.Grouping {
	case "require_all":
		return !slices.ContainsFunc(d.FMRIs, func(f string) bool { return !up(f) })
	case "require_any":
		return len(d.FMRIs) == 0 || slices.ContainsFunc(d.FMRIs, up)
	case "optional_all":
		return !slices.ContainsFunc(d.FMRIs, func(f string) bool { return !up(f) && mayComeUp(tx, zone, f, nil) })
	case "exclude_all":
		return !slices.ContainsFunc(d.FMRIs, func(f string) bool { return up(f) || mayComeUp(tx, zone, f, nil) })
	}
	return false
}

// mayComeUp says whether an FMRI that is not online can get there by itself.
func mayComeUp(tx *world.Tx, zone, fmri string, seen []string) bool {
	return slices.ContainsFunc(instancesOf(Repository(tx, zone), fmri), func(s *world.Service) bool {
		return HasPotential(tx, zone, s, seen)
	})
}

// HasPotential says whether an instance is online or can get there without an
// administrator (has_potential in usr/src/cmd/svc/svcadm/synch.c).
func HasPotential(tx *world.Tx, zone string, s *world.Service, seen []string) bool {
	state, _ := State(s, tx.Now)
	switch {
	case state == Online || state == Degraded:
		return true
	case state == Maintenance || !wanted(tx, zone, s) || slices.Contains(seen, s.FMRI):
		return false
	}
	seen = append(slices.Clone(seen), s.FMRI)
	for _, d := range s.Depends {
		possible := func(f string) bool { return up(tx, zone, f) || mayComeUp(tx, zone, f, seen) }
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
func wanted(tx *world.Tx, zone string, s *world.Service) bool {
	r := Repository(tx, zone)
	switch {
	case !Wanted(s):
		return false
	case r.Milestone == "" || r.Milestone == "all" || s.FMRI == RestarterFMRI || s.FMRI == EarlyManifestImportFMRI:
		return true
	case r.Milestone == "none":
		return false
	}
	return supports(r, r.Milestone, s.FMRI, map[string]bool{})
}

// supports says whether fmri is the milestone or something that it depends on.
func supports(r *world.Repository, milestone, fmri string, seen map[string]bool) bool {
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
			for _, on := range instancesOf(r, f) {
				if supports(r, on.FMRI, fmri, seen) {
					return true
				}
			}
		}
	}
	return false
}

// depth is how many start methods lie one behind the other on the way to an
// instance, its own included.
func depth(r *world.Repository, s *world.Service, seen map[string]int) int {
	if n, ok := seen[s.FMRI]; ok {
		return n
	}
	seen[s.FMRI] = 0 // a cycle ends here
	deepest := 0
	for _, d := range s.Depends {
		for _, f := range d.FMRIs {
			for _, on := range instancesOf(r, f) {
				if Wanted(on) {
					deepest = max(deepest, depth(r, on, seen))
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
func evaluate(tx *world.Tx, zone string) {
	r := Repository(tx, zone)
	if r == nil {
		return
	}
	for again := true; again; {
		again = false
		for _, fmri := range FMRIs(r) {
			if s := r.Instances[fmri]; s != nil && step(tx, zone, s) {
				again = true
			}
		}
	}
}

// step moves one instance. False: nothing to do.
func step(tx *world.Tx, zone string, s *world.Service) bool {
	state, next := State(s, tx.Now)
	if next != "" || s.Restarter != "" || state == "" {
		return false
	}
	wanted := wanted(tx, zone, s)
	switch {
	case state == Uninitialized && wanted:
		become(tx, s, Offline, "", "")
	case (state == Uninitialized || state == Offline) && !wanted:
		become(tx, s, Disabled, "", "disable_request")
	case state == Disabled && wanted:
		become(tx, s, Offline, "", "enable_request")
	case state == Offline && ready(tx, zone, s):
		start(tx, zone, s)
	case (state == Online || state == Degraded) && !wanted:
		stop(tx, zone, s, Disabled, "disable_request", false)
	default:
		return false
	}
	return true
}

func ready(tx *world.Tx, zone string, s *world.Service) bool {
	return !slices.ContainsFunc(s.Depends, func(d world.Dependency) bool { return !satisfied(tx, zone, d) })
}

// left stops the dependents of an instance that has left online, as far as
// their restart_on says so.
func left(tx *world.Tx, zone string, gone *world.Service, failure bool) {
	r := Repository(tx, zone)
	for _, fmri := range FMRIs(r) {
		s := r.Instances[fmri]
		if state, next := State(s, tx.Now); next != "" || state != Online && state != Degraded {
			continue
		}
		for _, d := range s.Depends {
			concerns := slices.ContainsFunc(d.FMRIs, func(f string) bool { return slices.Contains(instancesOf(r, f), gone) })
			if concerns && restarts(d.RestartOn, failure) && !satisfied(tx, zone, d) {
				stop(tx, zone, s, Offline, "dependency_activity", false)
				break
			}
		}
	}
}

// restarts reads restart_on for a stop.
func restarts(on string, failure bool) bool {
	return on == "restart" || on == "refresh" || on == "error" && failure
}
