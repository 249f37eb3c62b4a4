// Package system holds the small commands of the simulated sled: about its
// hardware, processes, files, mounts and memory.
package system

import (
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Uname is uname(1) with at most one option. What the kernel says of its build
// is the simulator's own: real ones name the gate's commit, as
// "omnios-r151046-7b3f3d5b6d" or "helios-2.0.23000".
func Uname(_ *world.Tx, c cli.Call) cli.Reply {
	words := map[string]string{"": "SunOS", "-s": "SunOS", "-r": "5.11", "-m": "i86pc", "-p": "i386", "-v": "simulated"}
	word, ok := words[strings.Join(c.Args, " ")]
	if !ok {
		return cli.Reply{Stderr: "uname: illegal option\n", Exit: 1}
	}
	return cli.Reply{Stdout: word + "\n"}
}
