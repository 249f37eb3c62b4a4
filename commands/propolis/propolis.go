// Package propolis is sledctl propolis.
package propolis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/step"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/propolis"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// New is the command propolis.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("propolis", "Control the Propolis server of an instance", "")
	stage := func(stage instance.Stage, short, example string) *cobra.Command {
		_, name, _ := strings.Cut(string(stage), " ")
		return step.New(env, stage, &cobra.Command{Use: name + " --instance NAME", Short: short, Example: "  " + example}, printRunPropolis)
	}
	cmd.AddCommand(
		newGet(env),
		stage(instance.StageStart, "Start Propolis in a zone, and wait until it answers", "sledctl propolis start --instance web1"),
		stage(instance.StageEnsure, "Create the VM in Propolis without starting it", "sledctl propolis ensure --instance web1 --cpus 4 --memory 8G"),
		stage(instance.StageRun, "Start the VM, and wait until it runs", "sledctl propolis run --instance web1"),
		newVerb(env, instance.Settings.PowerOff, &cobra.Command{Use: "stop NAME|UUID", Short: "Power the VM off, and keep its zone"}),
		newVerb(env, instance.Settings.Reboot, &cobra.Command{Use: "reboot NAME|UUID", Short: "Reset the VM, and wait until it runs again"}),
		newVerb(env, instance.Settings.NMI, &cobra.Command{Use: "nmi NAME|UUID", Short: "Send the guest a non-maskable interrupt", Long: `Send the guest a non-maskable interrupt, to its first CPU. A guest that hangs writes a dump then, if it was set up for that.
Propolis does not report the effect; the console may show it.`}),
		newMonitor(env),
		newSpec(env),
	)
	return cmd
}

// shownMachine is a VM as its Propolis describes it.
type shownMachine struct {
	Instance   string `json:"instance"`
	ID         string `json:"id"`
	State      string `json:"state"`
	Generation uint64 `json:"generation"`
	Address    string `json:"address"`
	VNC        string `json:"vnc,omitempty"` // where its screen is, if it was asked
}

func machineList() terminal.List[shownMachine] {
	type column = terminal.Column[shownMachine]
	return terminal.List[shownMachine]{Kind: "Machine", Name: func(m shownMachine) string { return m.Instance }, Columns: []column{
		{Name: "instance", Value: func(m shownMachine) string { return m.Instance }},
		{Name: "state", Value: func(m shownMachine) string { return m.State }},
		{Name: "generation", Value: func(m shownMachine) string { return strconv.FormatUint(m.Generation, 10) }, Right: true},
		{Name: "address", Value: func(m shownMachine) string { return m.Address }},
		{Name: "id", Value: func(m shownMachine) string { return m.ID }, Extra: true},
		{Name: "vnc", Value: func(m shownMachine) string { return m.VNC }, Extra: true},
	}}
}

// printRunPropolis prints the VM as Propolis describes it, or that Propolis has none
// yet. The request has succeeded by now: if its result cannot be read, that is a
// warning and no failure.
func printRunPropolis(ctx context.Context, e *cli.Env, r record.Record) error {
	client, _, err := e.Propolis(ctx, r.ID)
	m := shownMachine{}
	if err == nil {
		m, err = machine(ctx, client, r)
	}
	if err != nil {
		m = shownMachine{Instance: r.Name, ID: r.ID, State: record.Absent, Address: r.Spec.Address.String()}
	}
	if err != nil && !errors.Is(err, propolis.ErrNoInstance) {
		m.State = record.Unknown
		e.Progress.Warn(fmt.Errorf("the request succeeded, but its result cannot be read: %w", err))
	}
	return machineList().PrintOne(e.Streams.Out, e.Output, m)
}

func newGet(env *cli.Env) *cobra.Command {
	var ref string
	cmd := &cobra.Command{
		Use:     "get NAME|UUID",
		Short:   "Show the state that Propolis reports of its VM",
		Example: `  sledctl propolis get web1`,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			if err := machineList().Check(env.Output); err != nil {
				return err
			}
			client, r, err := env.Propolis(ctx, ref)
			if err != nil {
				return err
			}
			m, err := machine(ctx, client, r)
			if err != nil {
				return err
			}
			return machineList().PrintOne(env.Streams.Out, env.Output, m)
		}),
	}
	addInstance(env, cmd, &ref)
	env.AddOutput(cmd)
	return cmd
}

// addInstance lets a command be told the instance by an argument or a flag.
func addInstance(env *cli.Env, cmd *cobra.Command, ref *string) {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		if *ref != "" || len(args) > 1 {
			return &cli.UsageError{Text: cmd.CommandPath() + ": want one instance, by its NAME or with --instance"}
		}
		*ref = args[0]
		return nil
	}
	cli.CompleteArgs(cmd, env.CompleteInstances)
	cmd.Flags().StringVar(ref, "instance", "", "`NAME|UUID` of the instance")
	env.CompleteFlag(cmd, "instance", env.CompleteInstances)
}

func machine(ctx context.Context, client propolis.Client, r record.Record) (shownMachine, error) {
	got, err := client.Get(ctx)
	if err != nil {
		return shownMachine{}, absentMachine(err, r)
	}
	now, err := client.Monitor(ctx, 0)
	if err != nil {
		return shownMachine{}, err
	}
	screen, err := client.ScreenURL(ctx)
	return shownMachine{Instance: r.Name, ID: got.Properties.ID, State: strings.ToLower(now.State), Generation: now.Generation, Address: r.Spec.Address.String(), VNC: screen}, err
}

// absentMachine turns the errors of a VM that does not exist into a NotFoundError,
// and returns any other as it is.
func absentMachine(err error, r record.Record) error {
	if errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, propolis.ErrNoInstance) {
		return fmt.Errorf("%w: %w", &cli.NotFoundError{What: "the machine of instance " + r.Name, List: "sledctl instance get " + r.Name}, err)
	}
	return err
}

// power is a verb on a VM that runs.
type power func(instance.Settings, context.Context, operation.Env, instance.PowerRequest) (instance.Result, error)

// newVerb changes the state of a machine by hand. What is wanted of the
// instance stays.
func newVerb(env *cli.Env, verb power, cmd *cobra.Command) *cobra.Command {
	var ref string
	var m cli.Mutation
	name, _, _ := strings.Cut(cmd.Use, " ")
	cmd.Args = cobra.NoArgs
	cmd.Example = "  sledctl propolis " + name + " --instance web1"
	cmd.RunE = env.Run(func(ctx context.Context, _ []string) error {
		if ref == "" {
			return cli.NoInstanceFlag()
		}
		return env.ChangeInstance(ctx, m, func(ctx context.Context, s instance.Settings, op operation.Env) (instance.Result, error) {
			return verb(s, ctx, op, instance.PowerRequest{Verb: "propolis " + name, Ref: ref, DryRun: m.Dry()})
		})
	})
	m.Add(cmd, false)
	addInstance(env, cmd, &ref)
	env.AddOutput(cmd)
	return cmd
}

func newMonitor(env *cli.Env) *cobra.Command {
	var ref string
	cmd := &cobra.Command{
		Use:   "monitor NAME|UUID",
		Short: "Print each state of the VM until it ends",
		Long: `Print each state of the VM until it ends: until it is destroyed or has failed. The command uses a long poll; a state that lasts
only a moment may be missed. It connects again if the connection breaks; a Propolis server that restarted without its VM is an error
(exit 1). With -o json each line is one object.`,
		Example: `  sledctl propolis monitor web1`,
		RunE:    env.Run(func(ctx context.Context, _ []string) error { return runMonitor(ctx, env, ref) }),
	}
	addInstance(env, cmd, &ref)
	env.AddOutput(cmd)
	return cmd
}

func runMonitor(ctx context.Context, e *cli.Env, ref string) error {
	if err := machineList().Check(e.Output); err != nil {
		return err
	}
	client, r, err := e.Propolis(ctx, ref)
	if err != nil {
		return err
	}
	if _, err := client.Get(ctx); errors.As(err, new(*propolis.OtherError)) {
		return err
	}
	print := machineList().Follow(e.Streams.Out, e.Output)
	return client.Follow(ctx, func(s propolis.Status) error {
		return print(shownMachine{Instance: r.Name, ID: r.ID, State: strings.ToLower(s.State), Generation: s.Generation, Address: r.Spec.Address.String()})
	})
}
