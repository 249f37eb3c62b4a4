package instance

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/instance/logs"
)

// logOptions select lines.
type logOptions struct {
	follow, previous, raw bool
	since                 string
	tail                  int
}

func newLogs(env *cli.Env) *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:   "logs NAME|UUID",
		Short: "Print what the Propolis of an instance has logged",
		Long: `Print what the Propolis of an instance has logged: the log of its service, with the lines of svc.startd. On a terminal these are the last
100 lines, else all. If the zone is gone, or with --previous, they are those of the newest bundle of one of its zones, also of an instance
that was deleted. What the guest prints is on instance console.`,
		Example: `  sledctl instance logs web1
  sledctl instance logs web1 --since 10m -o json
  sledctl instance logs web1 -f`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runLogs(ctx, env, o, args[0]) }),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "print new lines as they come, until ^C")
	flags.BoolVar(&o.previous, "previous", false, "the newest bundle, although there is a zone")
	flags.BoolVar(&o.raw, "raw", false, "print the lines as they are logged")
	flags.StringVar(&o.since, "since", "", "only lines since a `TIME`: 10m ago, or 2026-11-23T06:27:17Z")
	flags.IntVar(&o.tail, "tail", -1, "only the last `N` lines (0: all)")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// mostOnTerminal is how many lines a terminal gets unasked.
const mostOnTerminal = 100

func runLogs(ctx context.Context, e *cli.Env, o logOptions, ref string) error {
	list := lineList()
	if err := list.Check(e.Output); err != nil {
		return err
	}
	since, err := o.check(e.Now())
	if err != nil {
		return err
	}
	h, places, err := e.Places()
	if err != nil {
		return err
	}
	s, _, err := e.Instances(ctx)
	if err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	of, err := logs.Find(ctx, h.Files(), places, s, view, ref)
	if err != nil {
		return err
	}
	p := &linePrinter{e: e, name: of.Name, raw: o.raw, print: list.Follow(e.Streams.Out, e.Output)}
	switch {
	case o.follow && of.Deleted:
		return &cli.UsageError{Text: "--follow: instance " + of.Name + " was deleted, and logs nothing"}
	case o.follow:
		return followLog(ctx, p, h.Files(), o, since, ref)
	}
	if now, there := logs.Current(s, view, ref); there && !o.previous {
		data, err := now.Read(h.Files())
		switch {
		case err == nil:
			return p.all(data, o, since)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	past, err := logs.Past(ctx, h.Files(), places, s, of.ID)
	if err != nil {
		return err
	}
	return printKept(ctx, p, h.Files(), past, o, since)
}

// printKept prints what a bundle has.
func printKept(ctx context.Context, p *linePrinter, files host.Files, past []logs.Log, o logOptions, since time.Time) error {
	taken, err := p.e.Bundles(ctx)
	if err != nil {
		return err
	}
	kept, data, err := logs.Kept(files, past, taken)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &cli.NotFoundError{What: "a log of instance " + p.name, List: "sledctl zone bundle list"}
	case err != nil:
		return err
	}
	p.from = kept.ID
	p.e.Progress.Say("of bundle %s, taken %s from zone %s", kept.ID, terminal.Ago(p.e.Now(), kept.Time), kept.Zone)
	return p.all(data, o, since)
}

// followLog prints what is there and what comes, until the context ends.
func followLog(ctx context.Context, p *linePrinter, files host.Files, o logOptions, since time.Time, ref string) error {
	f := logs.Follower{Files: files, Log: func(ctx context.Context) (logs.Log, bool) { return p.current(ctx, ref) }}
	for first := true; ; first = false {
		data, another, err := f.Next(ctx)
		if err != nil {
			return err
		}
		if another {
			p.e.Progress.Say("a new log from here")
		}
		if !first {
			o.tail, since = 0, time.Time{}
		}
		if err := p.all(data, o, since); err != nil {
			return err
		}
	}
}

// current is where the log of the instance is; false: it has no zone.
func (p *linePrinter) current(ctx context.Context, ref string) (logs.Log, bool) {
	s, _, err := p.e.Instances(ctx)
	if err != nil {
		return logs.Log{}, false
	}
	view, err := p.e.View(ctx)
	if err != nil {
		return logs.Log{}, false
	}
	return logs.Current(s, view, ref)
}

// check refuses what cannot be, and says since when lines are wanted.
func (o logOptions) check(now time.Time) (since time.Time, err error) {
	switch {
	case o.follow && o.previous:
		return since, &cli.UsageError{Text: "--follow and --previous cannot both be given: a bundle does not grow"}
	case o.raw && o.since != "":
		return since, &cli.UsageError{Text: "--raw and --since cannot both be given: times are not read then"}
	case o.tail < -1:
		return since, &cli.UsageError{Text: fmt.Sprintf("--tail %d: want a number of lines, 0 for all", o.tail)}
	}
	return cli.Since(now, o.since)
}
