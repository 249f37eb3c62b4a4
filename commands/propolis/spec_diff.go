package propolis

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/propolis/spec"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/layout"
)

type specDiffOptions struct{ detailed bool }

func newSpecDiff(env *cli.Env) *cobra.Command {
	var o specDiffOptions
	cmd := &cobra.Command{
		Use:   "diff NAME|UUID [FILE]",
		Short: "Compare an instance's spec with its VM, or with a file",
		Long: `Compare an instance's spec with its VM, or with a file: the spec that sledctl sent to Propolis with the VM that Propolis has, or
with the VM that instance ensure --spec FILE would ask for. The meaning counts: defaults that a server fills in, and spellings of UUIDs, are no difference.

sledctl does not print secrets and contents of disks, but a keyed digest of each.`,
		Example: `  sledctl propolis spec diff web1
  sledctl propolis spec diff web1 web1.toml --detailed-exitcode`,
		Args: cobra.RangeArgs(1, 2),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runSpecDiff(ctx, env, args, o) }),
	}
	cmd.Flags().BoolVar(&o.detailed, "detailed-exitcode", false, "exit 10 if there is a difference")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// shownDifference is a part of a VM that differs from what was asked for. Null and
// "-" stand for a part that one side does not have.
type shownDifference struct {
	Path string  `json:"path"`
	Sent *string `json:"sent"`
	Got  *string `json:"got"`
}

func differenceList(other string) terminal.List[shownDifference] {
	type column = terminal.Column[shownDifference]
	shown := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return terminal.List[shownDifference]{Kind: "Difference", Name: func(d shownDifference) string { return d.Path }, Columns: []column{
		{Name: "path", Value: func(d shownDifference) string { return d.Path }},
		{Name: "sent", Value: func(d shownDifference) string { return shown(d.Sent) }},
		{Name: other, Value: func(d shownDifference) string { return shown(d.Got) }},
	}}
}

func runSpecDiff(ctx context.Context, e *cli.Env, args []string, o specDiffOptions) error {
	list, look := differenceList("running"), runningMachine
	if len(args) == 2 {
		list, look = differenceList("wanted"), wantedMachine
	}
	if err := list.Check(e.Output); err != nil {
		return err
	}
	sent, err := sentSpec(ctx, e, args[0])
	if err != nil {
		return err
	}
	if sent.secrets != nil && len(sent.Spec.Sealed()) > 0 {
		return sent.secrets
	}
	got, err := look(ctx, e, sent, args)
	if err != nil {
		return err
	}
	var all []shownDifference
	for _, d := range spec.Compare(sent.hide(sent.Spec), sent.hide(got)) {
		row := shownDifference{Path: d.Path}
		if d.Sent != "" {
			row.Sent = &d.Sent
		}
		if d.Got != "" {
			row.Got = &d.Got
		}
		all = append(all, row)
	}
	if len(all) == 0 && e.Output.Format != terminal.FormatJSON {
		e.Progress.Say("no difference")
		return nil
	}
	if err := list.Print(e.Streams.Out, e.Output, all); err != nil || !o.detailed || len(all) == 0 {
		return err
	}
	return cli.ErrDifferences
}

func runningMachine(ctx context.Context, e *cli.Env, sent shownSpec, _ []string) (spec.InstanceSpec, error) {
	running, err := runningSpec(ctx, e, sent.ID)
	return running.Spec, err
}

// wantedMachine is what the instance would be made of with the spec of a file.
func wantedMachine(ctx context.Context, e *cli.Env, sent shownSpec, args []string) (spec.InstanceSpec, error) {
	w, err := description.Wanted(ctx, e, description.Flags{Spec: args[1]})
	if err != nil {
		return spec.InstanceSpec{}, err
	}
	s, _, err := e.Instances(ctx)
	if err != nil {
		return spec.InstanceSpec{}, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return spec.InstanceSpec{}, err
	}
	r, err := s.Find(view, sent.ID)
	if err != nil {
		return spec.InstanceSpec{}, err
	}
	// What the file cannot leave open is checked by its own keys.
	d := *w.Machine
	if !d.CPUs {
		d.Spec.Board.CPUs = sent.Spec.Board.CPUs
	}
	if !d.Memory {
		d.Spec.Board.MemoryMiB = sent.Spec.Board.MemoryMiB
	}
	if err := d.Check(layout.ServerOf(s.Underlay)); err != nil {
		return spec.InstanceSpec{}, err
	}
	return instance.AskedMachine(s.Underlay, r, instance.Wanted{Machine: w.Machine}, sent.Spec)
}
