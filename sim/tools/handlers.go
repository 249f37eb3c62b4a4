package tools

import (
	"maps"

	"github.com/sledctl/sledctl/sim/tools/zoneadm"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// Handlers carry out what is scheduled on a sled.
func Handlers() world.Handlers {
	all := smf.ServiceHandlers(runMethod)
	maps.Copy(all, zoneadm.Handlers())
	return all
}

// runMethod runs a method of SMF in a shell of its zone.
func runMethod(tx *world.Tx, m smf.MethodCall) smf.MethodResult {
	reply := RunShell(tx, m.Zone, m.Script, m.Env, nil)
	return smf.MethodResult{Exit: reply.Exit, Output: reply.Stdout + reply.Stderr, Took: reply.Took, Hung: reply.Blocked}
}
