package services

import (
	"fmt"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// svcadm is one run of the command on one zone.
type svcadm struct {
	*smfHandle
	out cli.Reply
}

// Svcadm is svcadm(8), of which enable and disable with -t, restart and clear are
// simulated, each of instances by their full name, or of services with one.
// Nothing waits (-s): for an instance in maintenance it would never end (omicron
// issue 4252).
func Svcadm(tx *world.Tx, c cli.Call) cli.Reply {
	options, words := cli.Getopt(c.Args, "z:", nil)
	zoneName := ""
	for _, o := range options {
		if o.Bad != "" {
			panic(world.Unsimulated{What: "option -" + o.Bad})
		}
		zoneName = o.Value
	}
	zone, refused := smfZone(tx, c, zoneName)
	if refused != nil {
		return *refused
	}
	if len(words) < 2 {
		panic(world.Unsimulated{})
	}
	options, operands := cli.Getopt(words[1:], "t", nil)
	temporary := len(options) > 0 && options[0].Bad == ""
	enabling := words[0] == "enable" || words[0] == "disable"
	if len(operands) == 0 || len(options) > 0 && !(temporary && enabling) {
		panic(world.Unsimulated{})
	}
	s := &svcadm{smfHandle: bindSMF(tx, zone)}
	if s.smfHandle == nil {
		return s.out.Die("svcadm", "Couldn't bind to configuration repository: %s.\n", scfNoServer)
	}
	s.Repository = s.Clone()
	found, complaints := s.walk("svcadm", operands, noInstance)
	if s.out = complaints; len(found) > len(operands) {
		panic(world.Unsimulated{What: "a service with several instances"})
	}
	switch {
	case enabling:
		s.setEnabled(found, words[0] == "enable", temporary)
	case words[0] == "restart":
		for _, e := range found {
			smf.Restart(tx, zone, e.FMRI())
		}
	case words[0] == "clear":
		for _, e := range found {
			if !smf.Clear(tx, zone, e.FMRI()) {
				s.out = s.out.Die("svcadm", "Instance \"%s\" is not in a maintenance or degraded state.\n", e.FMRI())
			}
		}
	default:
		panic(world.Unsimulated{What: fmt.Sprintf("subcommand %q", words[0])})
	}
	return s.out
}

// setEnabled is set_inst_enabled(): general_ovr for -t, else general, and the
// override goes.
func (s *svcadm) setEnabled(all []scf.Entity, enable, temporary bool) {
	override := &enable
	if !temporary && len(all) > 0 {
		override = nil
		for _, e := range all {
			e.Ensure("general", "framework", "enabled", "boolean", fmt.Sprint(enable))
		}
		if err := smf.Adopt(s.tx, s.zone, s.Repository); err != nil {
			s.out = s.out.Die("svcadm", "%s: Repository read-only.\n", all[0].FMRI())
			return
		}
	}
	for _, e := range all {
		smf.SetTemporary(s.tx, s.zone, e.FMRI(), override)
	}
}
