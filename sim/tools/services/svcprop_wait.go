package services

import (
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// waitFor is do_wait(): until the property group's generation is another than
// the one that was read at the start.
func (s *svcprop) waitFor(operand string) cli.Reply {
	found, complaints := s.walk([]string{operand}, true, noEntity)
	if len(found) != 1 {
		for _, text := range complaints {
			s.out.Warn("svcprop", "%s", text)
		}
		if len(found) > 1 {
			s.out.Warn("svcprop", severalMatch, operand)
			for _, m := range found {
				s.out.Stderr += "    " + m.FMRI() + "\n"
			}
		}
		if s.quiet {
			s.out.Stderr = ""
		}
		s.out.Exit = 1
		return s.out
	}
	m := found[0]
	want := propName{m.Group, m.Property}
	switch {
	case m.Property != "" && len(s.props) > 0:
		return cli.Reply{Stderr: "svcprop: -p cannot be used with property FMRIs.\n", Exit: 2}
	case m.Group == "" && len(s.props) == 0 && m.Instance != nil:
		return cli.Reply{Stderr: "svcprop: Cannot wait for an instance.\n", Exit: 2}
	case m.Group == "" && len(s.props) == 0:
		return cli.Reply{Stderr: "svcprop: Cannot wait for a service.\n", Exit: 2}
	case m.Group == "":
		want = s.props[0]
	case len(s.props) > 0:
		want.property = s.props[0].group
	}
	g := s.live(m.Entity, false).Find(want.group) // not composed: scf_instance_get_pg
	if g == nil || want.property != "" && g.Property(want.property) == nil {
		return s.die("Not found.\n")
	}
	return s.waitChange(m.Entity, want, g)
}

// waitChange waits for a change of the group and prints what it is then.
func (s *svcprop) waitChange(e scf.Entity, want propName, was *scf.Group) cli.Reply {
	zone, fmri, door := s.zone, e.FMRI(), smf.Repository(s.tx, s.zone).Door
	generation := smf.Generation(s.service(e), s.tx.Now)
	broken := func(tx *world.Tx) bool {
		return !smf.DoorOpen(tx, zone) || !smf.Repository(tx, zone).Door.Equal(door)
	}
	until := func(tx *world.Tx) bool {
		if broken(tx) {
			return true
		}
		if was.Name == "restarter" {
			return smf.Generation(smf.Service(tx, zone, fmri), tx.Now) != generation
		}
		_, now := findGroup(tx, zone, fmri, want.group)
		return now == nil || !sameGroup(was, now)
	}
	return cli.Reply{Next: &cli.Next{Until: until, Do: func(tx *world.Tx) cli.Reply {
		if broken(tx) {
			return s.die("Unexpected libscf error: %s.  Exiting.\n", scfBroken)
		}
		e, g := findGroup(tx, zone, fmri, want.group)
		if g == nil {
			return s.die("Not found.\n")
		}
		property := g.Property(want.property)
		switch {
		case want.property == "":
			s.showGroup(e, g)
		case property == nil:
			s.missing("Not found.\n")
		default:
			s.show(e, g, property)
		}
		return s.out
	}}}
}

// findGroup looks a group up again in a later transaction.
func findGroup(tx *world.Tx, zone, fmri, group string) (scf.Entity, *scf.Group) {
	h := restarterHandle(tx, zone, []string{fmri}, []propName{{group, ""}})
	if h == nil {
		var text string
		if h, text = bindSMF(tx, zone); text != "" {
			return scf.Entity{}, nil
		}
	}
	matches := h.Matches(fmri, true)
	if len(matches) != 1 {
		return scf.Entity{}, nil
	}
	return matches[0].Entity, h.live(matches[0].Entity, false).Find(group)
}

func sameGroup(a, b *scf.Group) bool {
	return slices.EqualFunc(a.Properties, b.Properties, func(p, q *scf.Property) bool {
		return p.Name == q.Name && p.Type == q.Type && slices.Equal(p.Values, q.Values)
	})
}
