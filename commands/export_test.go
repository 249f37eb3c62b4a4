package commands

import (
	"context"
	"net"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/sim/world"
)

// Draw replaces the source of random ids, so that a dry run and the run after
// it can be made to choose the same.
func (e *Env) Draw(draw func() string) { e.draw = draw }

// SimulatedConfigOf is what a fresh simulated sled of a mode is given.
func SimulatedConfigOf(mode world.Mode) string { return simConfig(mode) }

// Listen replaces how the agent listens, so that no network is needed.
func (e *Env) Listen(open func(context.Context, agent.Address) (net.Listener, error)) {
	e.listen = open
}
