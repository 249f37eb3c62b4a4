package instance

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sledctl/sledctl/host/fault"
	"github.com/sledctl/sledctl/smf"
	"github.com/sledctl/sledctl/zone"
)

// Whether a recorded run is gone on with, or is taken away for another one: a
// machine that runs is never ended for a difference that nobody has asked for.

// canResume says whether the recorded run can be continued: it is of this boot,
// nothing of it is broken, and nothing that it was built with has changed.
func canResume(b blueprint, old, next Record, seen Seen, c Change) (bool, error) {
	if old.Run == nil {
		return false, nil
	}
	changes := differences(old.Spec, next.Spec)
	if old.Name != next.Name {
		changes = append(changes, Difference{Field: "name", Is: old.Name, Wanted: next.Name})
	}
	p := progressOf(b, old, seen)
	z, there := seen.Inv.Zone(old.Run.Zone)
	switch {
	case seen.unreachable(*old.Run, p) && len(changes) == 0:
		return true, nil
	case seen.unseen() && !old.Run.Ensured && c.Only == "": // no machine was made, so nothing is lost with it
		return false, nil
	case seen.unseen() && (len(changes) == 0 || !c.Recreate):
		return false, &UnseenError{Name: old.Name, Err: seen.why()}
	case len(changes) > 0 && (seen.alive(old) || c.Only != "" && p.built(changes, *old.Run)) && !c.Recreate:
		return false, &ConflictError{Name: old.Name, Differences: changes, Recreate: c.Only == ""}
	case len(changes) > 0:
		return c.Only != "", nil
	case seen.alive(old) && !(p.installed && p.linksThere()) && !c.Recreate:
		return false, &ConflictError{Name: old.Name, Differences: driftDifferences(b, old, seen, p), Recreate: c.Only == ""}
	case seen.usurped(*old.Run, p):
		return false, nil
	case !there:
		return !old.Run.Ensured && old.Run.Boot == seen.Boot, nil
	case z.State == zone.Running:
		lost := old.Run.Ensured && !p.ensured || slices.Contains([]string{"Stopping", "Stopped", "Failed", "Destroyed"}, seen.Inside.VM.State) ||
			seen.Inside.Services[serviceFMRI(b, old)] == smf.Maintenance
		return p.installed && !lost && p.linksThere(), nil
	case z.State == zone.Installed:
		return p.installed && p.dataset && !old.Run.Ensured && old.Run.Boot == seen.Boot, nil
	default:
		return z.State == zone.Configured && p.configured && !old.Run.Ensured && old.Run.Boot == seen.Boot, nil
	}
}

// unreachable says whether Propolis runs, in a zone as it was made, and cannot
// be asked for want of its address alone: somebody has deleted that. Propolis
// still listens there, so the address is all that must be made again.
// Guess: that a listening socket outlives its address, as those of TCP do.
func (s Seen) unreachable(run Run, p progress) bool {
	return run.Ensured && !run.Foreign && s.Inside.Err == nil && s.Inside.VM.Err != nil && !isNoInstance(s.Inside.VM.Err) &&
		p.installed && p.linksThere() && p.online && !p.address
}

// built says whether a run already has what one of the changes would change:
// VNICs and the zonepath are chosen with the run, disks and the address are in
// the zone's configuration and profile, CPUs and memory go to Propolis.
func (p progress) built(changes []Difference, run Run) bool {
	return slices.ContainsFunc(changes, func(d Difference) bool {
		switch d.Field {
		case "cpus", "memory":
			return run.Ensured
		case "disks", "address":
			return p.configured
		}
		return true
	})
}

// alive says whether the instance's machine is there and has not ended. It is
// not powered off for a difference unless the operator says so.
func (s Seen) alive(r Record) bool {
	ended := []string{"", "Stopping", "Stopped", "Failed", "Destroyed"}
	return s.Inside.VM.ID == r.ID && !slices.Contains(ended, s.Inside.VM.State)
}

// driftDifferences lists what somebody else has changed of a run.
func driftDifferences(b blueprint, r Record, seen Seen, p progress) []Difference {
	var all []Difference
	config, _ := seen.Inv.Config(r.Run.Zone)
	for _, d := range zone.Compare(zoneConfig(b, r), config) {
		all = append(all, Difference{Field: "zone's " + d.Property, Is: cmp.Or(d.Found, "none"), Wanted: cmp.Or(d.Wanted, "none")})
	}
	for _, v := range r.Run.vnics() {
		if !p.vnics[v.Name] {
			all = append(all, Difference{Field: "VNIC " + v.Name, Is: "gone or another", Wanted: "over=" + v.Over + ",mac=" + v.MAC})
		}
	}
	return all
}

// usurped says whether another's link has the name of one of the run's VNICs.
func (s Seen) usurped(run Run, p progress) bool {
	return slices.ContainsFunc(run.vnics(), func(v VNIC) bool {
		_, there := s.Inv.Link(v.Name)
		return there && !p.vnics[v.Name]
	})
}

func (p progress) linksThere() bool {
	for _, there := range p.vnics {
		if !there {
			return false
		}
	}
	return true
}

// UnseenError is a running zone into which one could not look: nothing that
// may be running is rebuilt on a guess.
type UnseenError struct {
	Name string
	Err  error
}

// Error says why.
func (e *UnseenError) Error() string {
	return fmt.Sprintf("instance %q runs, but cannot be looked into: %v", e.Name, e.Err)
}

func (*UnseenError) Kind() fault.Kind { return fault.Refused }

// Unwrap gives the cause.
func (e *UnseenError) Unwrap() error { return e.Err }

// Hint says what makes it sure.
func (e *UnseenError) Hint() string {
	return "sledctl instance stop " + e.Name + " powers it off as it is; start builds it anew"
}

// BrokenError is a single step on an instance that was complete and is not any
// more: no step of it mends that.
type BrokenError struct {
	Name   string
	Status Status
}

// Error says in what state it is.
func (e *BrokenError) Error() string {
	if e.Status.Reason == "" {
		return fmt.Sprintf("instance %q is %s", e.Name, e.Status.State)
	}
	return fmt.Sprintf("instance %q is %s: %s", e.Name, e.Status.State, e.Status.Reason)
}

func (*BrokenError) Kind() fault.Kind { return fault.Conflict }

// Hint says what builds it anew.
func (e *BrokenError) Hint() string { return "sledctl instance ensure " + e.Name + " builds it anew" }
