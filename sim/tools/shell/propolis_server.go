package shell

import (
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// PropolisProgram is the name of the file that is a Propolis server.
const PropolisProgram = "propolis-server"

// PropolisServer is the program: once it listens, it runs until it is killed.
// Args[0] is the file that it was started from.
func PropolisServer(tx *world.Tx, c cli.Call) cli.Reply {
	p, stderr, exit, _ := zones.Spawn(tx, c.Zone, c.Args, c.Env)
	if p == nil {
		return cli.Reply{Stderr: stderr, Exit: exit}
	}
	gone := func(tx *world.Tx) bool {
		return !slices.ContainsFunc(tx.State.Processes, func(q *world.Process) bool { return q.PID == p.PID })
	}
	// A shell exits with 143 if SIGTERM ended its command.
	return cli.Reply{Stderr: stderr, Next: &cli.Next{Until: gone, Do: func(*world.Tx) cli.Reply { return cli.Reply{Exit: 143} }}}
}
