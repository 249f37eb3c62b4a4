package services

import (
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// svcadmUsage is usage() of usr/src/cmd/svc/svcadm/svcadm.c, shortened by the
// examples of patterns at its end.
const svcadmUsage = "Usage: svcadm [-S <state>] [-v] [-Z | -z zone] [cmd [args ... ]]\n\n" +
	"\tsvcadm enable [-rst] [<service> ...]\t- enable and online service(s)\n" +
	"\tsvcadm disable [-c comment] [-st] [<service> ...]\t- disable and offline service(s)\n" +
	"\tsvcadm restart [-d] [<service> ...]\t- restart specified service(s)\n" +
	"\tsvcadm refresh [<service> ...]\t\t- re-read service configuration\n" +
	"\tsvcadm mark [-It] <state> [<service> ...] - set maintenance state\n" +
	"\tsvcadm clear [<service> ...]\t\t- clear maintenance state\n" +
	"\tsvcadm milestone [-d] <milestone>\t- advance to a service milestone\n\n\t"

// svcadm is one run of the command on one zone.
type svcadm struct {
	*smfHandle
	verbose   bool
	operands  []string
	temporary bool
	out       cli.Reply
}

// Svcadm is svcadm(8).
func Svcadm(tx *world.Tx, c cli.Call) cli.Reply {
	options, rest := cli.Getopt(c.Args, "S:vZz:", nil)
	s := &svcadm{}
	zoneName := ""
	for _, o := range options {
		switch o.Letter {
		case 'v':
			s.verbose = true
		case 'z':
			if c.Zone != world.GlobalZone {
				return cli.Reply{}.Die("svcadm", "svcadm -z may only be used from the global zone\n")
			}
			zoneName = o.Value
		case 'S', 'Z':
			return cli.NotSimulated("svcadm", "option -%c", o.Letter)
		default:
			return cli.Reply{Stderr: svcadmUsage, Exit: 2}
		}
	}
	if len(rest) == 0 {
		return cli.Reply{Stderr: svcadmUsage, Exit: 2}
	}
	return s.inZone(tx, c, zoneName, rest)
}

func (s *svcadm) inZone(tx *world.Tx, c cli.Call, zoneName string, words []string) cli.Reply {
	zone, known := smfZone(tx, c, zoneName)
	if !known {
		return cli.Reply{}.Die("svcadm", "invalid zone '%s'\n", zoneName)
	}
	var text string
	if s.smfHandle, text = changeSMF(tx, zone); text != "" {
		return cli.Reply{}.Die("svcadm", "Couldn't bind to configuration repository: %s.\n", text)
	}
	switch words[0] {
	case "enable":
		return s.enable(words[1:])
	case "disable":
		return s.disable(words[1:])
	case "restart":
		return s.simple(words[1:], "d", "restart", func(e scf.Entity) { smf.Restart(s.tx, s.zone, e.FMRI()) })
	case "clear":
		return s.clear(words[1:])
	case "mark":
		return s.mark(words[1:])
	case "refresh", "milestone":
		return cli.NotSimulated("svcadm", "subcommand %q", words[0])
	}
	return cli.Reply{Stderr: svcadmUsage, Exit: 2}
}

// instances resolves the operands: abbreviations must be unambiguous, globs
// need not be (SCF_WALK_UNIPARTIAL). ok is false for a usage error.
func (s *svcadm) instances() (found []scf.Match, ok bool) {
	if len(s.operands) == 0 {
		return nil, false
	}
	var unambiguous []string
	for _, operand := range s.operands {
		matches := s.Matches(operand, false)
		switch {
		case strings.HasPrefix(operand, "lrc:"):
			s.fail(legacyMatch, operand)
		case len(matches) > 1 && !isGlob(operand):
			s.fail(severalMatch, operand)
			for _, m := range matches {
				s.out.Stderr += "    " + m.FMRI() + "\n"
			}
		default:
			unambiguous = append(unambiguous, operand)
		}
	}
	if len(unambiguous) == 0 {
		return nil, true
	}
	found, complaints := s.walk(unambiguous, false, noInstance)
	for _, text := range complaints {
		s.fail("%s", text)
	}
	return found, true
}

func (s *svcadm) fail(format string, args ...any) {
	s.out.Warn("svcadm", format, args...)
	s.out.Exit = 1
}

func (s *svcadm) state(e scf.Entity) string {
	state, _ := smf.State(s.service(e), s.tx.Now)
	return state
}

// options reads a subcommand's options. ok is false for a usage error.
func (s *svcadm) options(words []string, spec string) (letters string, ok bool) {
	options, operands := cli.Getopt(words, spec, nil)
	s.operands = operands
	for _, o := range options {
		if o.Bad != "" {
			return "", false
		}
		letters += string(o.Letter)
	}
	return letters, true
}

func (s *svcadm) usage() cli.Reply { return cli.Reply{Stderr: svcadmUsage, Exit: 2} }

func (s *svcadm) enable(words []string) cli.Reply {
	letters, ok := s.options(words, "rst")
	found, ok2 := s.instances()
	if !ok || !ok2 {
		return s.usage()
	}
	s.temporary = strings.Contains(letters, "t")
	if strings.Contains(letters, "r") {
		return cli.NotSimulated("svcadm", "enable -r")
	}
	var all []scf.Entity
	for _, m := range found {
		all = append(all, m.Entity)
	}
	s.setEnabled(all, true)
	if !strings.Contains(letters, "s") || s.out.Exit != 0 {
		return s.out
	}
	return s.await(found, s.enabledYet)
}

func (s *svcadm) disable(words []string) cli.Reply {
	letters, ok := s.options(words, "c:st")
	found, ok2 := s.instances()
	if !ok || !ok2 {
		return s.usage()
	}
	s.temporary = strings.Contains(letters, "t")
	var all []scf.Entity
	for _, m := range found {
		all = append(all, m.Entity)
	}
	s.setEnabled(all, false)
	if !strings.Contains(letters, "s") || s.out.Exit != 0 {
		return s.out
	}
	return s.await(found, s.disabledYet)
}

// setEnabled is set_inst_enabled(): general_ovr for -t, else general, and the
// override goes.
func (s *svcadm) setEnabled(all []scf.Entity, enable bool) {
	word := map[bool]string{true: "enabled", false: "disabled"}[enable]
	for _, e := range all {
		if s.temporary {
			if s.verbose {
				s.out.Stdout += fmt.Sprintf("%s temporarily %s.\n", e.FMRI(), word)
			}
			continue
		}
		e.Ensure("general", "framework", "enabled", "boolean", fmt.Sprint(enable))
		if s.verbose {
			s.out.Stdout += fmt.Sprintf("%s %s.\n", e.FMRI(), word)
		}
	}
	if len(all) == 0 {
		return
	}
	if !s.temporary {
		if err := smf.Adopt(s.tx, s.zone, s.Repository); err != nil {
			s.fail("%s: Repository read-only.\n", all[0].FMRI())
			return
		}
	}
	for _, e := range all {
		if s.temporary {
			smf.SetTemporary(s.tx, s.zone, e.FMRI(), &enable)
		} else {
			smf.SetTemporary(s.tx, s.zone, e.FMRI(), nil)
		}
	}
}

// simple is a subcommand without more to it than an action.
func (s *svcadm) simple(words []string, spec, action string, do func(scf.Entity)) cli.Reply {
	_, ok := s.options(words, spec)
	found, ok2 := s.instances()
	if !ok || !ok2 {
		return s.usage()
	}
	for _, m := range found {
		do(m.Entity)
		if s.verbose {
			s.out.Stdout += fmt.Sprintf("Action %s set for %s.\n", action, m.FMRI())
		}
	}
	return s.out
}

func (s *svcadm) clear(words []string) cli.Reply {
	_, ok := s.options(words, "")
	found, ok2 := s.instances()
	if !ok || !ok2 {
		return s.usage()
	}
	for _, m := range found {
		action := "maint_off"
		if s.state(m.Entity) == smf.Degraded {
			action = "restore"
		}
		if !smf.Clear(s.tx, s.zone, m.FMRI()) {
			s.fail("Instance \"%s\" is not in a maintenance or degraded state.\n", m.FMRI())
		} else if s.verbose {
			s.out.Stdout += fmt.Sprintf("Action %s set for %s.\n", action, m.FMRI())
		}
	}
	return s.out
}

// mark knows the state that an operator falls into by hand: maintenance.
func (s *svcadm) mark(words []string) cli.Reply {
	letters, ok := s.options(words, "It")
	if !ok || len(s.operands) < 2 {
		return s.usage()
	}
	state := s.operands[0]
	s.operands = s.operands[1:]
	switch {
	case letters != "":
		return cli.NotSimulated("svcadm", "mark -%s", letters)
	case state == smf.Degraded:
		return cli.NotSimulated("svcadm", "mark %s", state)
	case state != smf.Maintenance:
		return s.usage()
	}
	found, _ := s.instances()
	for _, m := range found {
		smf.MarkMaintenance(s.tx, s.zone, m.FMRI())
	}
	return s.out
}
