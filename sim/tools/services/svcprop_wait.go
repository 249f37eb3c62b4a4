package services

import (
	"reflect"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// waitFor is do_wait(): until the property group's generation is another than
// the one that was read at the start. Then it prints the property as it is.
func (s *svcprop) waitFor(e scf.Entity, want propName) cli.Reply {
	was := s.live(e, false).Find(want.group) // not composed: scf_instance_get_pg
	if was.Property(want.property) == nil {
		return s.out.Die("svcprop", "Not found.\n")
	}
	zone, fmri, door := s.zone, e.FMRI(), smf.Repository(s.tx, s.zone).Door
	generation := smf.Generation(s.service(e), s.tx.Now)
	broken := func(tx *world.Tx) bool {
		return !smf.DoorOpen(tx, zone) || !smf.Repository(tx, zone).Door.Equal(door)
	}
	until := func(tx *world.Tx) bool {
		switch {
		case broken(tx):
			return true
		case was.Name == "restarter":
			return smf.Generation(smf.Service(tx, zone, fmri), tx.Now) != generation
		}
		return !reflect.DeepEqual(was, groupNow(tx, zone, fmri, want))
	}
	return cli.Reply{Next: &cli.Next{Until: until, Do: func(tx *world.Tx) cli.Reply {
		if broken(tx) {
			return s.out.Die("svcprop", "Unexpected libscf error: %s.  Exiting.\n", scfBroken)
		}
		property := groupNow(tx, zone, fmri, want).Property(want.property)
		if property == nil {
			return s.out.Die("svcprop", "Not found.\n")
		}
		s.show(property)
		return s.out
	}}}
}

// groupNow looks a group up again in a later transaction; nil if it is gone.
func groupNow(tx *world.Tx, zone, fmri string, p propName) *scf.Group {
	h := restarterHandle(tx, zone, fmri, p)
	if h == nil {
		if h = bindSMF(tx, zone); h == nil {
			return nil
		}
	}
	found, _ := h.walk("svcprop", []string{fmri}, noEntity)
	if len(found) == 0 {
		return nil
	}
	return h.live(found[0], false).Find(p.group)
}
