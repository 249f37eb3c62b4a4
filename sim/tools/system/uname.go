// Package system holds the small commands of the simulated sled: about its
// hardware, processes, files, mounts and memory.
package system

import (
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Uname is uname(1) with -v. The build that the kernel names is the simulator's
// own: real ones name the gate's commit, e.g. "omnios-r151046-7b3f3d5b6d" or
// "helios-2.0.23000".
func Uname(_ *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) == 1 && c.Args[0] == "-v")
	return cli.Reply{Stdout: "simulated\n"}
}

// Zonename prints the name of the zone that it runs in
// (usr/src/cmd/zonename/zonename.c).
func Zonename(_ *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) == 0)
	return cli.Reply{Stdout: c.Zone + "\n"}
}
