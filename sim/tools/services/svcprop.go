package services

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// svcprop is one run of the command.
type svcprop struct {
	*smfHandle
	current bool // -c
	out     cli.Reply
}

// propName is an operand of -p: group/property.
type propName struct{ group, property string }

// Svcprop is svcprop(1), of which the values of an instance's properties are
// simulated, and waiting for a change of one (usr/src/cmd/svc/svcprop/svcprop.c).
func Svcprop(tx *world.Tx, c cli.Call) cli.Reply {
	s := &svcprop{}
	options, operands := cli.Getopt(c.Args, "cp:wz:", nil)
	var props []propName
	zoneName, wait := "", false
	for _, o := range options {
		switch o.Letter {
		case 'c':
			s.current = true
		case 'p':
			props = append(props, readProp(o.Value))
		case 'w':
			wait = true
		case 'z':
			zoneName = o.Value
		default:
			panic(world.Unsimulated{What: "option -" + o.Bad})
		}
	}
	if len(props) == 0 || len(operands) != 1 || wait && (s.current || len(props) > 1) {
		panic(world.Unsimulated{})
	}
	zone, refused := smfZone(tx, c, zoneName)
	if refused != nil {
		return *refused
	}
	if s.smfHandle = restarterHandle(tx, zone, operands[0], props...); s.smfHandle == nil {
		if s.smfHandle = bindSMF(tx, zone); s.smfHandle == nil {
			return s.out.Die("svcprop", "Could not connect to configuration repository: %s.\n", scfNoServer)
		}
	}
	found, complaints := s.walk("svcprop", operands, noEntity)
	switch {
	case len(found) == 0:
		return complaints
	case len(found) > 1 || operands[0] != found[0].FMRI():
		panic(world.Unsimulated{What: "properties of a service"})
	case wait:
		return s.waitFor(found[0], props[0])
	}
	groups := s.groups(found[0])
	for _, p := range props {
		s.named(found[0], groups, p)
	}
	return s.out
}

// readProp is add_prop() for a property.
func readProp(value string) propName {
	group, property, _ := strings.Cut(value, "/")
	if !scf.ValidName(group) || !scf.ValidName(property) {
		panic(world.Unsimulated{What: "-p " + value})
	}
	return propName{group, property}
}

// restarterHandle is bindSMF for a question that svc.configd answers from
// memory: the restarter's properties of an instance that is named in full. Those
// who wait for a service ask it all the time. Nil: the file is needed.
func restarterHandle(tx *world.Tx, zone, fmri string, props ...propName) *smfHandle {
	if !smf.DoorOpen(tx, zone) || slices.ContainsFunc(props, func(p propName) bool { return p.group != "restarter" }) {
		return nil
	}
	f, ok := scf.ParseFMRI(fmri)
	if state, _ := smf.State(smf.Service(tx, zone, fmri), tx.Now); !ok || state == "" {
		return nil
	}
	service := &scf.Service{Name: f.Service, Instances: []*scf.Instance{{Name: f.Instance}}}
	return &smfHandle{tx, zone, &scf.Repository{Services: []*scf.Service{service}}}
}

// groups are the property groups that the options choose: the running snapshot
// with what is not in snapshots, or what is there now.
func (s *svcprop) groups(e scf.Entity) scf.Groups {
	if s.current {
		return s.live(e, true)
	}
	groups := slices.Clone(e.Service.Snapshot(e.Instance))
	for _, g := range s.live(e, true) {
		if g.Transient && groups.Find(g.Name) == nil {
			groups = append(groups, g)
		}
	}
	return groups
}

// named prints one operand of -p.
func (s *svcprop) named(e scf.Entity, groups scf.Groups, p propName) {
	g := groups.Find(p.group)
	property := g.Property(p.property)
	switch {
	case g == nil:
		s.out = s.out.Die("svcprop", "Couldn't find property group `%s' for instance `%s'.\n", p.group, e.FMRI())
	case property == nil:
		s.out = s.out.Die("svcprop", "Couldn't find property `%s/%s' for instance `%s'.\n", p.group, p.property, e.FMRI())
	default:
		s.show(property)
	}
}

// show is display_prop().
func (s *svcprop) show(p *scf.Property) {
	quoted := make([]string, len(p.Values))
	for i, v := range p.Values {
		quoted[i] = quoteForShell(v)
	}
	s.out.Stdout += strings.Join(quoted, " ") + "\n"
}

// quoteForShell is quote_for_shell(): a backslash before the metacharacters of
// the Bourne shell, "" for nothing.
func quoteForShell(value string) string {
	if value == "" {
		return `""`
	}
	return smf.Escape(value)
}
