package instance

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/events"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/comparison"
)

// formatTOML is the document of an instance, which only instance get prints.
const formatTOML terminal.Format = "toml"

type getOptions struct {
	far       remote
	diff      bool
	detailed  bool
	cloudInit bool
	events    int // the newest, on a terminal
}

func newGet(env *cli.Env) *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use:   "get NAME|UUID ...",
		Short: "Show an instance, wanted and observed",
		Long: `Show an instance, wanted and observed. On a terminal, a screen begins with its state, the reason, and the command to type. Below
stands what is wanted (the record, and what follows from it) next to what is observed (by Propolis, the links and the zone's
configuration), then what the instance is made of on the host, and its newest events (sledctl events has all).

With --diff, print only what differs. In a pipe, and with -o table or --columns, one row is printed.

With -o toml, print the document that describes the instance, with nothing left open: instance ensure -f takes it, and finds nothing
to do while the instance runs. In the places of secrets it has their digests, which ensure takes for those that the instance has.

With --cloud-init, print what cloud-init tells the guest at its first boot (docs/first-boot.md), passwords too: what its VM was given, or
else what it gets when it is brought up.`,
		Example: `  sledctl instance get web1
  sledctl instance get web1 --diff --detailed-exitcode
  sledctl instance get web1 -o toml >web1.toml`,
		Args: cobra.MinimumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runGet(ctx, env, o, args) }),
	}
	cmd.Flags().BoolVar(&o.diff, "diff", false, "print only what differs")
	cmd.Flags().BoolVar(&o.detailed, "detailed-exitcode", false, "with --diff: exit 10 if something differs")
	cmd.Flags().BoolVar(&o.cloudInit, "cloud-init", false, "print its cloud-init data, with secrets")
	cmd.Flags().IntVar(&o.events, "events", 5, "how many of its newest events a terminal shows")
	o.far.Add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// check refuses flags that exclude each other.
func (o getOptions) check(document bool, refs int) error {
	switch {
	case o.events < 0:
		return &cli.UsageError{Text: fmt.Sprintf("--events %d: want a number from 0", o.events)}
	case (document || o.diff || o.cloudInit) && refs > 1:
		return &cli.UsageError{Text: "instance get: --diff, --cloud-init and -o toml are about one instance"}
	case o.cloudInit && (document || o.diff):
		return &cli.UsageError{Text: "instance get: --cloud-init, --diff and -o toml exclude each other"}
	case o.cloudInit && o.far.Is():
		return &cli.UsageError{Text: "an agent cannot be asked for --cloud-init: it gives no secrets away", Advice: "run it on the sled"}
	}
	return nil
}

func runGet(ctx context.Context, e *cli.Env, o getOptions, refs []string) error {
	document := e.Output.Format == formatTOML
	switch err := o.check(document, len(refs)); {
	case err != nil:
		return err
	case o.cloudInit:
		return printTold(ctx, e, refs[0])
	case document:
		return printDocument(ctx, e, o.far, refs[0])
	case o.diff:
		return runDiff(ctx, e, o, refs[0])
	case o.far.Is():
		return changeRemotely(ctx, e, o.far, cli.Mutation{}, manyFlags{parallel: 1}, [][]string{refs}, "")
	}
	list := cli.InstanceList(e)
	if err := list.Check(e.Output); err != nil {
		return err
	}
	all, err := compare(ctx, e, refs)
	switch {
	case err != nil:
		return err
	case e.Output.Screen(e.Streams.Out):
		return printScreens(ctx, e, o, all)
	case len(all) == 1 && e.Output.Format == terminal.FormatJSON:
		return gotList().PrintOne(e.Streams.Out, e.Output, gotOf(all[0], nextOf(e, all[0])))
	}
	shown := make([]cli.Instance, len(all))
	for i, c := range all {
		shown[i] = cli.ShowInstance(c.Instance)
	}
	return list.Print(e.Streams.Out, e.Output, shown)
}

// compare looks at each instance.
func compare(ctx context.Context, e *cli.Env, refs []string) ([]comparison.Comparison, error) {
	s, env, err := e.Instances(ctx)
	if err != nil {
		return nil, err
	}
	view, err := e.View(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]comparison.Comparison, len(refs))
	for i, ref := range refs {
		if all[i], err = comparison.Look(ctx, s, env, view, ref); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// nextOf is what to type about an instance, as it is typed here.
func nextOf(e *cli.Env, c comparison.Comparison) []comparison.Next {
	all := c.Next()
	for i := range all {
		all[i].Command = e.Afar.Typed(all[i].Command)
	}
	return all
}

// runDiff prints in what an instance is not as wanted.
func runDiff(ctx context.Context, e *cli.Env, o getOptions, ref string) error {
	if err := rowList().Check(e.Output); err != nil {
		return err
	}
	if !o.far.Is() {
		all, err := compare(ctx, e, []string{ref})
		if err != nil {
			return err
		}
		return printDifferences(e, o, all[0].Differing(), nextOf(e, all[0]))
	}
	c, err := o.far.Client(e, cli.Mutation{})
	if err != nil {
		return err
	}
	differs, err := c.Differences(ctx, ref)
	if err != nil {
		return err
	}
	return printDifferences(e, o, differs.Items, nil)
}

func printDifferences(e *cli.Env, o getOptions, differing []comparison.Row, next []comparison.Next) error {
	if len(differing) == 0 && e.Output.Format != terminal.FormatJSON {
		e.Progress.Say("no difference")
		return nil
	}
	if err := rowList().Print(e.Streams.Out, e.Output, differing); err != nil {
		return err
	}
	if e.Output.Screen(e.Streams.Out) {
		next = slices.DeleteFunc(next, func(n comparison.Next) bool { return strings.Contains(n.Command, " --diff") }) // here one is
		if _, err := io.WriteString(e.Streams.Out, toType(e.Streams.Out, next)); err != nil {
			return err
		}
	}
	if !o.detailed || len(differing) == 0 {
		return nil
	}
	return cli.ErrDifferences
}

func printScreens(ctx context.Context, e *cli.Env, o getOptions, all []comparison.Comparison) error {
	for i, c := range all {
		if i > 0 {
			if _, err := io.WriteString(e.Streams.Out, "\n"); err != nil {
				return err
			}
		}
		if err := screen(e.Streams.Out, e.Now(), c, nextOf(e, c)); err != nil {
			return err
		}
		if err := printEvents(ctx, e, o, c); err != nil {
			return err
		}
	}
	return nil
}

// printEvents prints the newest events of an instance. That they cannot be read is a
// warning: what it is now is printed.
func printEvents(ctx context.Context, e *cli.Env, o getOptions, c comparison.Comparison) error {
	if o.events < 1 {
		return nil
	}
	text, err := events.Recent(ctx, e, c.ID, o.events)
	if err != nil {
		e.Progress.Warn(fmt.Errorf("its events cannot be read: %w", err))
		return nil
	}
	if text == "" {
		return nil
	}
	_, err = io.WriteString(e.Streams.Out, "\n"+text)
	return err
}

// printDocument prints what instance ensure -f reads.
func printDocument(ctx context.Context, e *cli.Env, far remote, ref string) error {
	text, err := textOf(ctx, e, far, ref)
	if err != nil {
		return err
	}
	_, err = io.WriteString(e.Streams.Out, text)
	return err
}

// textOf is the document of an instance, here or at an agent.
func textOf(ctx context.Context, e *cli.Env, far remote, ref string) (string, error) {
	if !far.Is() {
		_, text, err := documentOf(ctx, e, ref)
		return text, err
	}
	c, err := far.Client(e, cli.Mutation{})
	if err != nil {
		return "", err
	}
	d, err := c.Document(ctx, ref)
	return d.Text, err
}
