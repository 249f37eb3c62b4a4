package commands

import (
	"bytes"
	"context"
	"net"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// On is the environment of one run on a sled that is in this process already,
// for those who measure: a simulated one, behind whatever decorators. Its
// configuration is read from that sled's own /etc/sledctl. Observe, which may
// be nil, is told what becomes of each action. What the run prints goes to out
// and errs.
func On(h host.Host, observe func(plan.Event)) (env *Env, out, errs *bytes.Buffer) {
	streams, out, errs := terminal.Buffers(terminal.Pretended{})
	env = NewEnv(streams, []string{"SLEDCTL_HOST=sim:in-this-process"}, "")
	env.Host = func() (host.Host, error) { return h, nil }
	env.watch = observe
	return env, out, errs
}

// Listen replaces how the agent and a forwarded screen listen, so that no network
// is needed.
func (e *Env) Listen(open func(context.Context, agent.Address) (net.Listener, error)) {
	e.listen = open
}
