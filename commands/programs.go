package commands

import (
	"bytes"
	"os"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/config"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
)

// What the manual's generator and the benchmarks use.

// Root is the tree of all commands, for the manual. Nothing is opened or read
// until one of them runs.
func Root() *cobra.Command {
	streams := terminal.System(os.Stdin, os.Stdout, os.Stderr, nil)
	root := newRoot(cli.NewEnv(streams, nil, ""))
	for todo := []*cobra.Command{root}; len(todo) > 0; todo = append(todo[1:], todo[0].Commands()...) {
		todo[0].Long = wrap(todo[0].Long, PageWidth)
	}
	return root
}

// Setting is one setting, for the manual.
type Setting = config.Key

// Settings lists all settings, in the order of the configuration file.
func Settings() []Setting { return config.Keys() }

// SimulatedConfig is the configuration that a fresh simulated sled is given,
// for the manual: an example that runs.
func SimulatedConfig() string { return cli.SimulatedConfig("") }

// On is the environment of one run on a sled that is in this process already,
// for those who measure: a simulated one, behind whatever decorators. Its
// configuration is read from that sled's own /etc/sledctl. Observe, which may
// be nil, gets the events of each action. The run prints to out and errs.
func On(h host.Host, observe func(plan.Event)) (env *cli.Env, out, errs *bytes.Buffer) {
	streams, out, errs := terminal.Buffers(terminal.Pretended{})
	env = cli.NewEnv(streams, []string{"SLEDCTL_HOST=sim:in-this-process"}, "")
	env.Host = func() (host.Host, error) { return h, nil }
	env.Watch = observe
	return env, out, errs
}
