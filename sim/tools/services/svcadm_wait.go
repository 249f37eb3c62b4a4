package services

import (
	"fmt"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// verdict is what a look at an instance says to -s: done, with an exit code
// and words, or not yet.
type verdict struct {
	done bool
	exit int
	text string
}

// enabledYet is a turn of wait_fmri_enabled().
func (s *svcadm) enabledYet(tx *world.Tx, fmri string) verdict {
	service := smf.Service(tx, s.zone, fmri)
	switch state, _ := smf.State(service, tx.Now); {
	case state == "":
		return verdict{true, 3, fmt.Sprintf("%s is misconfigured (lacks \"restarter\" property group).\n", fmri)}
	case state == smf.Online || state == smf.Degraded:
		return verdict{done: true}
	case state == smf.Maintenance:
		return verdict{true, 3, fmt.Sprintf("Instance \"%s\" is in maintenance state.\n", fmri)}
	case !smf.Wanted(service):
		return verdict{true, 3, fmt.Sprintf("Instance \"%s\" has been disabled by another entity.\n", fmri)}
	case !smf.HasPotential(tx, s.zone, service, nil):
		return verdict{true, 4, fmt.Sprintf("Instance \"%s\" has unsatisfied dependencies.\n", fmri)}
	}
	return verdict{}
}

// disabledYet is a turn of wait_fmri_disabled(). An instance in maintenance
// stays there, so nothing ends the wait for it (omicron issue 4252).
func (s *svcadm) disabledYet(tx *world.Tx, fmri string) verdict {
	service := smf.Service(tx, s.zone, fmri)
	switch state, _ := smf.State(service, tx.Now); {
	case state == "":
		return verdict{true, 3, fmt.Sprintf("%s is misconfigured (lacks \"restarter\" property group).\n", fmri)}
	case state == smf.Disabled:
		return verdict{done: true}
	case smf.Wanted(service):
		return verdict{true, 3, fmt.Sprintf("Instance \"%s\" has been enabled by another entity.\n", fmri)}
	}
	return verdict{}
}

// await waits for one instance after the other, as -s does.
func (s *svcadm) await(found []scf.Match, look func(*world.Tx, string) verdict) cli.Reply {
	if len(found) == 0 {
		return s.out
	}
	fmri := found[0].FMRI()
	broken := func(tx *world.Tx) bool { return !smf.DoorOpen(tx, s.zone) }
	out := s.out
	out.Next = &cli.Next{
		Until: func(tx *world.Tx) bool { return broken(tx) || look(tx, fmri).done },
		Do: func(tx *world.Tx) cli.Reply {
			s.out = cli.Reply{Exit: s.out.Exit}
			if broken(tx) {
				return s.out.Die("svcadm", "Connection to repository server broken.  Exiting.\n")
			}
			v := look(tx, fmri)
			if v.text != "" {
				s.out.Warn("svcadm", "%s", v.text)
			}
			if s.out.Exit == 0 || v.exit == 3 { // what the instance itself lacks comes before its dependencies
				s.out.Exit = v.exit
			}
			return s.await(found[1:], look)
		},
	}
	return out
}
