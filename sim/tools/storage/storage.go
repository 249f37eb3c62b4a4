// Package storage holds zfs, zpool and fstyp.
package storage

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// session is one call of zfs or zpool. What no driver, script or page uses of
// them is refused as a whole: see only.
type session struct {
	tx       *world.Tx
	call     cli.Call
	out, err strings.Builder
	next     *cli.Next
}

// dispatch runs a subcommand. They are simulated in the global zone only: no zone
// of this sled is given datasets that it manages itself.
func (s *session) dispatch(commands map[string]func([]string) int) cli.Reply {
	only(len(s.call.Args) > 0 && s.call.Zone == world.GlobalZone)
	run := commands[s.call.Args[0]]
	only(run != nil)
	exit := run(s.call.Args[1:])
	return cli.Reply{Stdout: s.out.String(), Stderr: s.err.String(), Exit: exit, Next: s.next}
}

// only refuses the call unless what it asks for is simulated.
func only(simulated bool) {
	if !simulated {
		panic(world.Unsimulated{})
	}
}

// options splits the arguments of a subcommand that wants so many operands. Each
// option is given once; those with a value are in the map with it.
func options(args []string, spec string, least, most int) (given map[byte]string, operands []string) {
	given = map[byte]string{}
	all, operands := cli.Getopt(args, spec, nil)
	for _, o := range all {
		_, twice := given[o.Letter]
		only(o.Bad == "" && !twice)
		given[o.Letter] = o.Value
	}
	only(len(operands) >= least && len(operands) <= most)
	return given, operands
}

// settings splits the arguments of a subcommand whose only options are settings
// (-o) and, if it is in the specification, -r (parseprop in zfs_main.c).
func settings(args []string, spec string, least, most int) (props map[string]string, recursive bool, operands []string) {
	props = map[string]string{}
	all, operands := cli.Getopt(args, spec, nil)
	for _, o := range all {
		only(o.Bad == "")
		if o.Letter == 'r' {
			recursive = true
			continue
		}
		setting(props, o.Value)
	}
	only(len(operands) >= least && len(operands) <= most)
	return props, recursive, operands
}

// setting adds a "property=value" to props.
func setting(props map[string]string, word string) {
	name, value, ok := strings.Cut(word, "=")
	_, twice := props[name]
	only(ok && !twice)
	props[name] = value
}

// say prints a line on standard error.
func (s *session) say(format string, args ...any) { fmt.Fprintf(&s.err, format+"\n", args...) }

// fail prints a line on standard error and is exit code 1.
func (s *session) fail(format string, args ...any) int {
	s.say(format, args...)
	return 1
}

// row prints cells as scripts want them.
func (s *session) row(cells []string) {
	for i, cell := range cells {
		if i > 0 {
			s.out.WriteByte('\t')
		}
		s.out.WriteString(cell)
	}
	s.out.WriteByte('\n')
}

// refused prints what the world refuses, and is the exit code.
func (s *session) refused(err error) int {
	if err == nil {
		return 0
	}
	r, ok := errors.AsType[*world.Refusal](err)
	if !ok {
		r = &world.Refusal{Text: "internal error: " + err.Error(), Exit: 1}
	}
	s.say("%s", r.Text)
	return r.Exit
}
