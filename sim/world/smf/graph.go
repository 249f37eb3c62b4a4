package smf

import (
	"slices"
	"strconv"
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
	s.Duration = snapshot.Value("startd", "duration")
	s.Depends = nil
	for _, g := range snapshot {
		if g.Type != "dependency" {
			continue
		}
		d := world.Dependency{Grouping: groupValue(g, "grouping"), RestartOn: groupValue(g, "restart_on")}
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
	timeout, _ := strconv.ParseUint(groupValue(g, "timeout_seconds"), 10, 64)
	return world.Method{Exec: groupValue(g, "exec"), Timeout: timeout}
}

func groupValue(g *scf.Group, name string) string { return scf.Groups{g}.Value(g.Name, name) }

// instancesOf are the instances that a dependency's FMRI stands for.
func instancesOf(r *world.Repository, fmri string) (all []*world.Service) {
	for _, name := range FMRIs(r) {
		if isOf(name, fmri) {
			all = append(all, r.Instances[name])
		}
	}
	return all
}

// isOf says whether an instance is what a dependency's FMRI says, or one of that service.
func isOf(instance, fmri string) bool {
	return instance == fmri || strings.HasPrefix(instance, fmri+":")
}

// DependsOn says whether an instance cannot run without another one.
func DependsOn(s *world.Service, instance string) bool {
	return slices.ContainsFunc(s.Depends, func(d world.Dependency) bool {
		return d.Grouping != "optional_all" && slices.ContainsFunc(d.FMRIs, func(f string) bool { return isOf(instance, f) })
	})
}

// up says whether one FMRI of a dependency is online.
func up(tx *world.Tx, zone, fmri string) bool {
	return slices.ContainsFunc(instancesOf(Repository(tx, zone), fmri), func(s *world.Service) bool {
		state, _ := State(s, tx.Now)
		return state == Online
	})
}

// satisfied says whether a dependency lets the service run.
func satisfied(tx *world.Tx, zone string, d world.Dependency) bool {
	up := func(fmri string) bool { return up(tx, zone, fmri) }
	switch d.Grouping {
	case "require_any":
		return len(d.FMRIs) == 0 || slices.ContainsFunc(d.FMRIs, up)
	case "optional_all":
		return !slices.ContainsFunc(d.FMRIs, func(f string) bool { return !up(f) && mayComeUp(tx, zone, f, nil) })
	}
	return !slices.ContainsFunc(d.FMRIs, func(f string) bool { return !up(f) })
}

// mayComeUp says whether an FMRI is online or can get there without an administrator
// (has_potential in usr/src/cmd/svc/svcadm/synch.c).
func mayComeUp(tx *world.Tx, zone, fmri string, seen []string) bool {
	return slices.ContainsFunc(instancesOf(Repository(tx, zone), fmri), func(s *world.Service) bool {
		state, _ := State(s, tx.Now)
		if state == Online || state == Maintenance || !Wanted(s) || slices.Contains(seen, s.FMRI) {
			return state == Online
		}
		seen := append(slices.Clone(seen), s.FMRI)
		return !slices.ContainsFunc(s.Depends, func(d world.Dependency) bool {
			possible := func(f string) bool { return mayComeUp(tx, zone, f, seen) }
			all := !slices.ContainsFunc(d.FMRIs, func(f string) bool { return !possible(f) })
			return d.Grouping == "require_all" && !all ||
				d.Grouping == "require_any" && len(d.FMRIs) > 0 && !slices.ContainsFunc(d.FMRIs, possible)
		})
	})
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
	if next != "" || state == "" {
		return false
	}
	switch wanted := Wanted(s); {
	case state == Uninitialized && wanted:
		become(tx, s, Offline, "", "")
	case (state == Uninitialized || state == Offline) && !wanted:
		become(tx, s, Disabled, "", "disable_request")
	case state == Disabled && wanted:
		become(tx, s, Offline, "", "enable_request")
	case state == Offline && ready(tx, zone, s):
		start(tx, zone, s)
	case state == Online && !wanted:
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
		if state, next := State(s, tx.Now); next != "" || state != Online {
			continue
		}
		for _, d := range s.Depends {
			concerns := slices.ContainsFunc(d.FMRIs, func(f string) bool { return isOf(gone.FMRI, f) })
			restarts := d.RestartOn == "restart" || d.RestartOn == "error" && failure
			if concerns && restarts && !satisfied(tx, zone, d) {
				stop(tx, zone, s, Offline, "dependency_activity", false)
				break
			}
		}
	}
}
