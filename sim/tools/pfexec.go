package tools

import (
	"fmt"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/shell"
	"github.com/sledctl/sledctl/sim/world"
)

// Pfexec runs a command with the privileges of the caller's profiles
// (usr/src/cmd/pfexec/pfexec.c). On the simulated sled everybody has all.
func Pfexec(tx *world.Tx, c cli.Call) cli.Reply {
	options, operands := cli.Getopt(c.Args, "P:", nil)
	for _, o := range options {
		if o.Bad != "" {
			return pfexecUsage()
		}
	}
	if len(operands) == 0 {
		return pfexecUsage()
	}
	// Guess: the text and the exit code of a command that is not found.
	name, ok := shell.ProgramName(operands[0])
	if !ok {
		return cli.Reply{Stderr: fmt.Sprintf("%s: No such file or directory\n", operands[0]), Exit: 1}
	}
	tool, ok := Lookup(name)
	if !ok {
		return cli.Reply{Stderr: fmt.Sprintf("%s: No such file or directory\n", operands[0]), Exit: 1}
	}
	c.Tool, c.Args = name, operands[1:]
	return tool(tx, c)
}

func pfexecUsage() cli.Reply {
	return cli.Reply{Stderr: "pfexec [-P privset] cmd [arg ..]\n", Exit: 1}
}
