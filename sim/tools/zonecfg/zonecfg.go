// Package zonecfg is the command zonecfg, with its language.
package zonecfg

import (
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
	s := &cfgSession{tx: tx, global: true, words: readWords()}
	if c.Zone != world.GlobalZone {
		s.zerr("zonecfg can only be run from the global zone.")
		return s.reply(1)
	}
	options, operands := cli.Getopt(c.Args, "f:z:", nil)
	file, from := "", false
	for _, o := range options {
		cli.Simulated(o.Bad == "")
		switch {
		case o.Letter == 'f':
			file, from = o.Value, true
			cli.Simulated(strings.HasPrefix(file, "/")) // also "-", standard input
		case !validZoneName(o.Value):
			cli.Simulated(o.Value != world.GlobalZone)
			s.zerr("%s: Bogus zone name", o.Value)
			s.err.WriteString("\n" + s.words.Syntax)
			return s.reply(2)
		default:
			s.zone, s.saved = o.Value, o.Value
		}
	}
	cli.Simulated(s.zone != "")
	do := func(tx *world.Tx) cli.Reply {
		s.tx = tx
		switch {
		case len(operands) > 0:
			s.feed(strings.Join(operands, " ") + "\n")
		case from:
			data, err := host.ReadFile(tx.Files, file)
			cli.Simulated(err == nil)
			s.fileMode, s.fileName = true, file
			s.feed(string(data))
		default: // no terminal: the same commands from standard input, and no prompts
			s.interactive = true
			s.initialize(false)
			s.feed(string(c.Stdin))
		}
		return s.reply(s.finish())
	}
	question := !from && len(operands) > 0 && (operands[0] == "info" || operands[0] == "export")
	if wait := tx.Latency(world.StepConfigure); wait > 0 && !question {
		return cli.Reply{Next: &cli.Next{After: wait, Do: do}}
	}
	return do(tx)
}

// validZoneName is zonecfg_validate_zonename: 1 to 63 characters, the first a
// letter or digit, the rest also ".", "_" or "-"; global is reserved.
func validZoneName(name string) bool {
	return name != "" && len(name) <= 63 && name != world.GlobalZone &&
		strings.Contains(alnum, name[:1]) && strings.Trim(name, alnum+"._-") == ""
}

const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
