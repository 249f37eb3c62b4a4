package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/logread"
	"github.com/sledctl/sledctl/sled/instance/logs"
)

// logOptions select lines.
type logOptions struct {
	selection
	far                   remote
	follow, previous, raw bool
	service               string
	since                 string
	tail                  int
}

func newLogs(env *cli.Env) *cobra.Command {
	var o logOptions
	cmd := &cobra.Command{
		Use:   "logs [NAME|UUID|PATTERN ...]",
		Short: "Print what the Propolis of an instance has logged",
		Long: `Print what the Propolis of an instance has logged: the log of its service, with the lines of svc.startd. On a terminal these are the last
100 lines, else all. If the zone is gone, or with --previous, they are those of the newest bundle of one of its zones, also of an instance
that was deleted.

With --service, they are those of another service of the zone, or of all. What the guest prints is on instance console NAME --history.

Lines of several instances are merged by time, with the name in front. Patterns of a shell, --state, --failed and --filter pick instances
as in instance list.

With --agent, the agent of a sled reads them: of at most 64 instances and 10,000 lines at once. With -f the command continues after a restart
of the agent, but for --raw, which then ends.`,
		Example: `  sledctl instance logs web1 --since 10m -o json
  sledctl instance logs web1 --service all --tail 50
  sledctl instance logs 'web*' --failed
  sledctl instance logs web1 web2 -f`,
		RunE: env.Run(func(ctx context.Context, args []string) error {
			o.name(args)
			return runLogs(ctx, env, o)
		}),
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.follow, "follow", "f", false, "print new lines as they come, until ^C")
	flags.BoolVar(&o.previous, "previous", false, "the newest bundle, although there is a zone")
	flags.BoolVar(&o.raw, "raw", false, "print the lines as they are logged")
	flags.StringVar(&o.service, "service", "", "the logs of this `FMRI` of the zone, or of all")
	flags.StringVar(&o.since, "since", "", "only lines since a `TIME`: 10m ago, or 2026-11-23T06:27:17Z")
	flags.IntVar(&o.tail, "tail", -1, "only the last `N` lines (0: all)")
	o.addTo(env, cmd)
	o.far.Add(cmd)
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// mostOnTerminal is how many lines a terminal gets unasked.
const mostOnTerminal = 100

func runLogs(ctx context.Context, e *cli.Env, o logOptions) error {
	list := lineList()
	if err := cmp.Or(o.selection.check("instance logs"), list.Check(e.Output)); err != nil {
		return err
	}
	since, err := o.check(e.Now())
	if err != nil {
		return err
	}
	names, err := o.instances(ctx, e)
	if err != nil || len(names) == 0 {
		return err
	}
	q := api.LogQuery{Instances: names, Service: o.service, Previous: o.previous, Since: since, Last: o.lines(e)}
	p := &linePrinter{e: e, other: o.service != "", print: list.Follow(e.Streams.Out, e.Output)}
	p.of(names)
	if !o.follow {
		return printLogs(ctx, e, o, q, p)
	}
	e.Progress.Follows()
	ctx, release := e.Streams.Out.WhileRead(ctx)
	defer release()
	err = printLogs(ctx, e, o, q, p)
	if gone := context.Cause(ctx); errors.Is(gone, syscall.EPIPE) {
		return gone
	}
	return err
}

// printLogs prints the lines as they are asked for.
func printLogs(ctx context.Context, e *cli.Env, o logOptions, q api.LogQuery, p *linePrinter) (err error) {
	switch {
	case o.raw && o.far.Is():
		return askRaw(ctx, e, o.far, q, o.follow, p.asLogged)
	case o.raw:
		return logread.Raw(ctx, e, q, o.follow, logread.CommandMost, p.asLogged, logread.Noted(e))
	case o.far.Is():
		err = askLogs(ctx, e, o.far, q, o.follow, p)
	default:
		err = logread.Read(ctx, e, q, o.follow, logread.CommandMost, p.all, logread.Noted(e))
	}
	if err == nil {
		p.hint(o.service == "")
	}
	return err
}

// askLogs has an agent read the logs.
func askLogs(ctx context.Context, e *cli.Env, far remote, q api.LogQuery, follow bool, p *linePrinter) error {
	c, err := far.Client(e, cli.Mutation{})
	if err != nil {
		return err
	}
	if len(q.Instances) > api.MaxLogNames {
		return &cli.UsageError{Text: fmt.Sprintf("an agent gives the logs of at most %d instances at once, not of %d", api.MaxLogNames, len(q.Instances))}
	}
	tell := func(lines []api.LogLine, cut bool) error {
		if cut && (q.Last == 0 || len(lines) < q.Last) {
			e.Progress.Tell("older lines are left out: an agent gives only the end of a long log")
		}
		return p.all(lines, cut)
	}
	if follow {
		c.Unreachable = e.Progress.Warn
		return c.FollowLogs(ctx, q, tell, logread.Noted(e))
	}
	answer, err := c.Logs(ctx, q)
	if err != nil {
		return err
	}
	for _, text := range answer.Notes {
		logread.Noted(e)(text)
	}
	return tell(answer.Items, answer.Cut)
}

// askRaw has an agent read one log.
func askRaw(ctx context.Context, e *cli.Env, far remote, q api.LogQuery, follow bool, tell func([]byte) error) error {
	c, err := far.Client(e, cli.Mutation{})
	if err != nil {
		return err
	}
	return c.LogData(ctx, q, follow, tell, logread.Noted(e))
}

// instances are the names that are meant: those that were typed, also of instances that are
// gone, or those that the selection picks.
func (o logOptions) instances(ctx context.Context, e *cli.Env) ([]string, error) {
	if !o.picks() {
		return o.names, nil
	}
	return o.resolve(ctx, e, o.far, cli.Mutation{}, bulk{verb: "logs"})
}

// lines is how many are printed at most; 0: all.
func (o logOptions) lines(e *cli.Env) int {
	if o.tail < 0 && e.Output.Screen(e.Streams.Out) {
		return mostOnTerminal
	}
	return max(o.tail, 0)
}

// check refuses what cannot be, and says since when lines are wanted.
func (o logOptions) check(now time.Time) (since time.Time, err error) {
	switch {
	case o.raw && len(o.names) > 1:
		return since, logread.ErrSeveral
	case o.follow && o.previous:
		return since, &cli.UsageError{Text: "--follow and --previous cannot both be given: a bundle does not grow"}
	case o.raw && o.since != "":
		return since, &cli.UsageError{Text: "--raw and --since cannot both be given: times are not read then"}
	case o.raw && o.service == string(logs.All):
		return since, logread.ErrSeveral
	case o.tail < -1:
		return since, &cli.UsageError{Text: fmt.Sprintf("--tail %d: want a number of lines, 0 for all", o.tail)}
	}
	return cli.Since(now, o.since)
}
