// Package zonecfg is the command zonecfg, with its language.
package zonecfg

import (
	"errors"
	"io/fs"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Run is zonecfg(8). It is no transaction of its own kind: with commands on
// its command line it carries on after an error, with a file it stops there,
// and either way it saves what was changed so far when it leaves. Some errors
// do not even set the exit code (usr/src/cmd/zonecfg/zonecfg.c: those that do
// not set saw_error).
func Run(tx *world.Tx, c cli.Call) cli.Reply {
	run, usage := zonecfgArguments(tx, c)
	if usage != nil {
		return *usage
	}
	if wait := tx.Latency(world.StepConfigure); wait > 0 && run.changes() {
		return cli.Reply{Next: &cli.Next{After: wait, Do: run.do}}
	}
	return run.do(tx)
}

// cfgRun is an invocation whose options were fine.
type cfgRun struct {
	call cli.Call
	zone string
	file string // -f
	from bool   // -f was given
	args []string
}

// changes says whether the commands may be more than a question.
func (r cfgRun) changes() bool {
	return r.from || len(r.args) == 0 || r.args[0] != "info" && r.args[0] != "export" && r.args[0] != "help"
}

// zonecfgArguments reads the options as main() does.
func zonecfgArguments(tx *world.Tx, c cli.Call) (cfgRun, *cli.Reply) {
	run := cfgRun{call: c}
	s := &cfgSession{global: true}
	ends := func(exit int) (cfgRun, *cli.Reply) {
		return run, &cli.Reply{Stdout: s.out.String(), Stderr: s.err.String(), Exit: exit}
	}
	if c.Zone != world.GlobalZone {
		s.zerr("zonecfg can only be run from the global zone.")
		return ends(1)
	}
	if len(c.Args) == 0 {
		s.usage(&s.err, cfgHelpUsage|cfgHelpSubcommands, false)
		return ends(2)
	}
	if c.Args[0] == "help" {
		s.tx = tx
		s.feed(strings.Join(c.Args, " ") + "\n")
		return ends(0)
	}
	options, operands := cli.Getopt(c.Args, "?f:R:z:", nil)
	run.args = operands
	for _, o := range options {
		switch {
		case o.Letter == '?' && o.Bad == "":
			s.usage(&s.out, cfgHelpUsage|cfgHelpSubcommands, true)
			return ends(2)
		case o.Bad != "":
			s.err.WriteString(cli.Complaint("zonecfg", o))
			s.usage(&s.err, cfgHelpUsage, false)
			return ends(2)
		case o.Letter == 'f':
			run.file, run.from = o.Value, true
		case o.Letter == 'R' && !strings.HasPrefix(o.Value, "/"):
			s.zerr("root path must be absolute: %s", o.Value)
			return ends(2)
		case o.Letter == 'R':
			// Guess: alternate roots are for installers; the simulated sled has none.
			s.zerr("root path must be a directory: %s", o.Value)
			return ends(2)
		case o.Letter == 'z' && o.Value != world.GlobalZone && !validZoneName(o.Value):
			s.zerr("%s: Bogus zone name", o.Value)
			s.usage(&s.err, cfgHelpSyntax, false)
			return ends(2)
		case o.Letter == 'z':
			run.zone = o.Value
		}
	}
	if run.zone == "" {
		s.usage(&s.err, cfgHelpUsage, false)
		return ends(2)
	}
	return run, nil
}

// validZoneName is zonecfg_validate_zonename: 1 to 63 characters, the first a
// letter or digit, the rest also ".", "_" or "-"; global is reserved.
func validZoneName(name string) bool {
	if name == "" || len(name) > 63 || name == world.GlobalZone {
		return false
	}
	for i, r := range []byte(name) {
		alnum := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("._-", rune(r))) {
			return false
		}
	}
	return true
}

// do carries the commands out, in one transaction.
func (r cfgRun) do(tx *world.Tx) cli.Reply {
	s := &cfgSession{tx: tx, zone: r.zone, saved: r.zone, isGlobal: r.zone == world.GlobalZone, global: true}
	switch {
	case len(r.args) > 0:
		s.feed(strings.Join(r.args, " ") + "\n")
	case !r.from || r.file == "-":
		// No terminal: the same commands from standard input, and no prompts.
		s.interactive, s.fileMode, s.fileName = true, r.from, r.file
		if !r.from {
			s.initialize(false)
		}
		s.feed(string(r.call.Stdin))
	default:
		data, ok := s.openFile(r.file)
		if !ok {
			return s.reply(1)
		}
		s.fileMode, s.fileName = true, r.file
		s.feed(data)
	}
	return s.reply(s.finish())
}

// openFile reads the file of -f.
func (s *cfgSession) openFile(name string) (string, bool) {
	if !strings.HasPrefix(name, "/") {
		name = "/" + name
	}
	info, err := s.tx.Files.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.zerr("could not open file %s: No such file or directory", name)
		return "", false
	case err == nil && !info.Mode.IsRegular():
		s.zerr("%s is not a regular file.", name)
		return "", false
	}
	data, err := host.ReadFile(s.tx.Files, name)
	if err != nil {
		s.zerr("could not open file %s: %s", name, cli.ErrnoText(err))
		return "", false
	}
	return string(data), true
}
