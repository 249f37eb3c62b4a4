package services

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// svcpropUsage is usage() of usr/src/cmd/svc/svcprop/svcprop.c.
const svcpropUsage = "Usage: svcprop [-fqtv] [-C | -c | -s snapshot] [-z zone] [-p [name/]name]... \n" +
	"         {FMRI | pattern}...\n" +
	"       svcprop -w [-fqtv] [-z zone] [-p [name/]name] {FMRI | pattern}\n"

// svcprop is one run of the command.
type svcprop struct {
	*smfHandle
	props                        []propName
	current, own, snapshot, wait bool // -c, -C, -s, -w
	snapshotName                 string
	types, fmris, quiet, verbose bool // -t, -f, -q, -v
	out                          cli.Reply
}

// propName is an operand of -p: a property group, or group/property.
type propName struct{ group, property string }

// Svcprop is svcprop(1).
func Svcprop(tx *world.Tx, c cli.Call) cli.Reply {
	s := &svcprop{}
	options, operands := cli.Getopt(c.Args, "Ccfp:qs:tvwz:", nil)
	zoneName := ""
	for _, o := range options {
		switch o.Letter {
		case 'C':
			s.own = true
		case 'c':
			s.current = true
		case 'f':
			s.types, s.fmris = true, true
		case 'p':
			if refusal := s.addProp(o.Value); refusal != nil {
				return *refusal
			}
		case 'q':
			s.quiet = true
		case 's':
			s.snapshot, s.snapshotName = true, o.Value
		case 't':
			s.types = true
		case 'v':
			s.verbose = true
		case 'w':
			s.wait = true
		case 'z':
			if c.Zone != world.GlobalZone {
				return cli.Reply{}.Die("svcprop", "svcprop -z may only be used from the global zone\n")
			}
			zoneName = o.Value
		default:
			return cli.Reply{Stderr: svcpropUsage, Exit: 2}
		}
	}
	if countTrue(s.own, s.current, s.snapshot, s.wait) > 1 || len(operands) == 0 {
		return cli.Reply{Stderr: svcpropUsage, Exit: 2}
	}
	zone, known := smfZone(tx, c, zoneName)
	if !known {
		return cli.Reply{}.Die("svcprop", "invalid zone '%s'\n", zoneName)
	}
	var text string
	if s.smfHandle = restarterHandle(tx, zone, operands, s.props); s.smfHandle == nil || s.snapshot {
		if s.smfHandle, text = bindSMF(tx, zone); text != "" {
			return s.die("Could not connect to configuration repository: %s.\n", text)
		}
	}
	if s.wait {
		if len(s.props) > 1 || len(operands) > 1 {
			return cli.Reply{Stderr: svcpropUsage, Exit: 2}
		}
		return s.waitFor(operands[0])
	}
	return s.print(operands)
}

// restarterHandle is bindSMF for a question that svc.configd answers from
// memory: the restarter's properties of instances that are named in full. Those
// who wait for a service ask it all the time. Nil: the file is needed.
func restarterHandle(tx *world.Tx, zone string, operands []string, props []propName) *smfHandle {
	h := &smfHandle{tx: tx, zone: zone, Repository: &scf.Repository{}}
	if !smf.DoorOpen(tx, zone) || len(props) == 0 || slices.ContainsFunc(props, func(p propName) bool { return p.group != "restarter" }) {
		return nil
	}
	for _, operand := range operands {
		f, ok := scf.ParseFMRI(operand)
		if state, _ := smf.State(smf.Service(tx, zone, operand), tx.Now); !ok || state == "" {
			return nil
		}
		h.AddService(f.Service)
		h.Service(f.Service).AddInstance(f.Instance)
	}
	return h
}

func countTrue(flags ...bool) int {
	n := 0
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

// addProp is add_prop(): nil, or how it refuses.
func (s *svcprop) addProp(value string) *cli.Reply {
	group, property, has := strings.Cut(value, "/")
	if strings.Contains(property, "/") {
		return &cli.Reply{Stderr: fmt.Sprintf("svcprop: -p argument `%s' has too many components.\n", value) + svcpropUsage, Exit: 2}
	}
	if !scf.ValidName(group) || has && !scf.ValidName(property) {
		bad := group
		if scf.ValidName(group) {
			bad = property
		}
		return &cli.Reply{Stderr: fmt.Sprintf("svcprop: Invalid component name `%s'.\n", bad), Exit: 2}
	}
	p := propName{group, property}
	if n := len(s.props); n > 0 && (s.props[n-1].property == "") != (p.property == "") {
		s.types = true
	}
	s.props = append(s.props, p)
	return nil
}

// die is die(): silent with -q.
func (s *svcprop) die(format string, args ...any) cli.Reply {
	if s.quiet {
		return cli.Reply{Stdout: s.out.Stdout, Exit: 1}
	}
	return s.out.Die("svcprop", format, args...)
}

func (s *svcprop) print(operands []string) cli.Reply {
	found, complaints := s.walk(operands, true, noEntity)
	for _, text := range complaints {
		s.out.Exit = 1
		if !s.quiet {
			s.out.Warn("svcprop", "%s", text)
		}
	}
	if len(found) > 1 {
		s.types, s.fmris = true, true
	}
	for _, m := range found {
		if refusal := s.entity(m); refusal != nil {
			return *refusal
		}
	}
	return s.out
}

// entity is process_fmri(): nil, or the end.
func (s *svcprop) entity(m scf.Match) *cli.Reply {
	if m.Instance == nil && s.snapshot {
		r := s.die("Only instances have snapshots.\n")
		return &r
	}
	if s.snapshot && (s.snapshotName != "running" || m.Instance.Running == nil) {
		r := s.die("No such snapshot.\n")
		return &r
	}
	groups := s.groups(m.Entity)
	switch {
	case m.Property != "" && len(s.props) > 0:
		return &cli.Reply{Stderr: "svcprop: The -p option cannot be used with property operands.\n" + svcpropUsage, Exit: 2}
	case m.Group != "":
		return s.groupOperand(m, groups)
	case len(s.props) == 0:
		for _, g := range groups {
			s.showGroup(m.Entity, g)
		}
		return nil
	}
	for _, p := range s.props {
		if !s.named(m.Entity, groups, p) && s.quiet && !s.verbose {
			return &cli.Reply{Exit: 1}
		}
	}
	return nil
}

// groups are the property groups that the options choose: the running snapshot
// with what is not in snapshots, or what is there now.
func (s *svcprop) groups(e scf.Entity) scf.Groups {
	switch {
	case e.Instance == nil:
		return *e.Groups()
	case s.own:
		return s.live(e, false)
	case s.current:
		return s.live(e, true)
	case s.snapshot:
		return e.Service.Snapshot(e.Instance)
	}
	groups := append(scf.Groups{}, e.Service.Snapshot(e.Instance)...)
	for _, g := range s.live(e, true) {
		if g.Transient && groups.Find(g.Name) == nil {
			groups = append(groups, g)
		}
	}
	return groups
}

// named prints one operand of -p. False: it is not there.
func (s *svcprop) named(e scf.Entity, groups scf.Groups, p propName) bool {
	kind := "instance"
	if e.Instance == nil {
		kind = "service"
	}
	g := groups.Find(p.group)
	property := g.Property(p.property)
	switch {
	case g == nil:
		s.missing("Couldn't find property group `%s' for %s `%s'.\n", p.group, kind, e.FMRI())
	case p.property == "":
		s.showGroup(e, g)
		return true
	case property == nil:
		s.missing("Couldn't find property `%s/%s' for %s `%s'.\n", p.group, p.property, kind, e.FMRI())
	default:
		s.show(e, g, property)
		return true
	}
	return false
}

func (s *svcprop) missing(format string, args ...any) {
	s.out.Exit = 1
	if !s.quiet || s.verbose {
		s.out.Warn("svcprop", format, args...)
	}
}
