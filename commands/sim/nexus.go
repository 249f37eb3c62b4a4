package sim

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/illumos/naming"
	"github.com/sledctl/sledctl/sim"
	"github.com/sledctl/sledctl/sled/failure"
)

func newNexus(env *cli.Env) *cobra.Command {
	cmd := cli.Group("nexus", "Run a simulated control plane near the simulated sled", `
The simulated control plane receives doorbells and upcalls, asks the agents of its sleds for the states of their VMs, and judges the
answers as Nexus does. The agent of the sled reaches it at the address of nexus.url; sledctl sim fault disturbs it.`)
	cmd.AddCommand(newNexusDecommission(env), newNexusInit(env), newNexusInstances(env), newNexusInventory(env), newNexusList(env), newNexusMigrate(env), newNexusPlace(env), newNexusReconcile(env), newNexusRemove(env), newNexusServe(env), newNexusSleds(env), newNexusSweep(env), newNexusWatch(env))
	return cmd
}

func newNexusInit(env *cli.Env) *cobra.Command {
	var o sim.NexusOptions
	var tokens string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create or upgrade a simulated control plane",
		Long: `Create or upgrade a simulated control plane. An existing one keeps what it knows of VMs. The eras, by how a sled notifies it:

  upcall    today's release: the upcall, with the state in its body
  both      the release after: the doorbell; an upcall counts as one, whatever its body
  doorbell  the release after that: no upcall

On a doorbell, the control plane asks the agent within the request, and then answers; with --later, it answers first. It asks each sled
for a VM that it does not know.`,
		Example: `  SLEDCTL_NEXUS_URL=http://127.77.255.2:12221 sledctl sim nexus init
  sledctl sim nexus init --address 127.77.255.2:12221 --era both --agent tcp:127.0.0.1:12345`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			var err error
			if o.Token, err = cli.ReadToken(tokens); err != nil {
				return err
			}
			return runNexusInit(ctx, env, o)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Address, "address", "", "HOST:PORT of the control plane (default: that of nexus.url)")
	flags.StringVar(&o.Era, "era", "both", "releases to behave like: "+cli.OrWords(sim.NexusEras()))
	flags.StringArrayVar(&o.Sleds, "agent", nil, "address of a sled's agent; repeatable (default: this sled's)")
	flags.StringVar(&tokens, "token-file", "", "`FILE` with the token for the agents, alone or as the agents' own")
	flags.BoolVar(&o.Later, "later", false, "answer a doorbell before asking the sled")
	env.Complete(cmd, "era", sim.NexusEras)
	return cmd
}

func runNexusInit(ctx context.Context, e *cli.Env, o sim.NexusOptions) error {
	if !slices.Contains(sim.NexusEras(), o.Era) {
		err := &cli.UsageError{Text: fmt.Sprintf("--era %q: want %s", o.Era, cli.OrWords(sim.NexusEras()))}
		if near := naming.Nearest(o.Era, sim.NexusEras()); near != "" {
			err.Advice = "did you mean: --era " + near
		}
		return err
	}
	for _, at := range o.Sleds {
		if _, err := agent.ParseAddress(at); err != nil {
			return &cli.UsageError{Text: "--agent: " + err.Error()}
		}
	}
	if err := checkAddress(o.Address); err != nil {
		return err
	}
	sled, _, err := simulatedSled(e)
	if err != nil {
		return err
	}
	c, err := e.Config()
	if err != nil {
		return err
	}
	if o.Address == "" {
		at, err := url.Parse(c.Nexus.URL)
		if err != nil || at.Host == "" {
			return &cli.UsageError{Text: "no address for the simulated control plane", Advice: "give --address HOST:PORT, or set nexus.url in " + naming.ConfigFile}
		}
		o.Address = at.Host
	}
	if len(o.Sleds) == 0 {
		o.Sleds = cli.AgentListens(e, c)
	}
	if err := sled.InitNexus(ctx, o); err != nil {
		return err
	}
	e.Progress.Say("a control plane of era %s answers at %s", o.Era, o.Address)
	return nil
}

// noNexus says how to get one.
func noNexus(err error) error {
	if errors.Is(err, sim.ErrNoNexus) {
		return &failure.RefusedError{Err: err, Advice: "to make one, run: sledctl sim nexus init"}
	}
	return err
}

// planeVMs is how VMs are printed as the control plane knows them.
func planeVMs(now func() time.Time) terminal.List[sim.NexusVM] {
	type vm = sim.NexusVM
	return terminal.List[vm]{Kind: "VM", Name: func(v vm) string { return v.ID }, Columns: []terminal.Column[vm]{
		{Name: "id", Value: func(v vm) string { return v.ID }},
		{Name: "state", Value: func(v vm) string { return v.State }},
		{Name: "generation", Value: func(v vm) string { return strconv.FormatUint(v.Gen, 10) }, Right: true},
		{Name: "check", Value: func(v vm) string { return v.Check }},
		{Name: "by", Value: func(v vm) string { return v.By }},
		{Name: "time", Value: func(v vm) string { return v.Time.Format(time.RFC3339Nano) }, Human: func(v vm) string { return terminal.Ago(now(), v.Time) }},
		{Name: "sled", Value: func(v vm) string { return v.Sled }, Extra: true},
	}}
}

func newNexusList(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the VMs as the control plane knows them",
		Long: `List the VMs as the control plane knows them: the last state and generation that it accepted, what made it ask (doorbell, upcall or
sweep), and the last result: success; no_such_instance, after which it treats the VM as failed; unreachable, client_error or a status,
which change nothing.`,
		Example: `  sledctl sim nexus list`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			all, err := sled.NexusVMs(ctx)
			if err != nil {
				return noNexus(err)
			}
			return planeVMs(env.Now).Print(env.Streams.Out, env.Output, all)
		}),
	}
	env.AddOutput(cmd)
	return cmd
}

func newNexusSweep(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:     "sweep",
		Short:   "Make the control plane ask once for every VM that it knows",
		Example: `  sledctl sim nexus sweep`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			return noNexus(sled.SweepNexus(ctx))
		}),
	}
}

func newNexusWatch(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "Sweep every 30 s, and print what the control plane learns",
		Long: `Sweep every 30 s, and print what the control plane learns: first the VMs as it knows them, then a line for each news, until ^C
(exit 130) or --timeout (exit 7). In a sweep it asks for each VM that has not ended, as its instance watcher does; without this command,
it asks only after a doorbell. With -o json each line is one object.`,
		Example: `  sledctl sim nexus watch`, Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			list := planeVMs(env.Now)
			if err := list.Check(env.Output); err != nil {
				return err
			}
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			return noNexus(sled.WatchNexus(ctx, list.Follow(env.Streams.Out, env.Output)))
		}),
	}
	env.AddOutput(cmd)
	return cmd
}

func newNexusServe(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the simulated control plane to other programs",
		Long: `Serve the simulated control plane to other programs at its address, until interrupted: to curl, and to an agent in the shell of sim
shell, which opens real connections. An agent with --host sim:DIR reaches the same control plane.`,
		Example: `  sledctl sim nexus serve &
  curl -s -X POST -H 'api-version: 2.0.0' http://127.77.255.2:12221/vmms/$ID/doorbell`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			sled, _, err := simulatedSled(env)
			if err != nil {
				return err
			}
			return noNexus(sled.ServeNexus(ctx, func(address string) { env.Progress.Say("listening on %s", address) }))
		}),
	}
}
