package tools

import (
	"slices"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// propolisProgram is the name of the file that is a Propolis server.
const propolisProgram = "propolis-server"

// propolisServer is the program: once it listens, it runs until it is killed.
// Args[0] is the file that it was started from.
func propolisServer(tx *world.Tx, c Call) Reply {
	p, stderr, exit, _ := zones.Spawn(tx, c.Zone, c.Args, c.Env)
	if p == nil {
		return Reply{Stderr: stderr, Exit: exit}
	}
	gone := func(tx *world.Tx) bool {
		return !slices.ContainsFunc(tx.State.Processes, func(q *world.Process) bool { return q.PID == p.PID })
	}
	// 143 is what a shell says of a command that SIGTERM ended.
	return Reply{Stderr: stderr, Next: &Next{Until: gone, Do: func(*world.Tx) Reply { return Reply{Exit: 143} }}}
}
