package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/logs"
)

// logOptions select lines.
type logOptions struct {
	selection
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
as in instance list.`,
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
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteInstances)
	return cmd
}

// mostOnTerminal is how many lines a terminal gets unasked.
const mostOnTerminal = 100

// errRaw is that lines of several logs cannot be as they were logged.
var errRaw = &cli.UsageError{Text: "--raw: lines of several logs have names and an order of their own", Advice: "give one instance, and with --service one service"}

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
	if o.raw && len(names) > 1 {
		return errRaw
	}
	r := &logReader{e: e, o: o, service: logs.Service(o.service)}
	if r.files, r.places, r.settings, err = r.base(ctx); err != nil {
		return err
	}
	p := &linePrinter{e: e, raw: o.raw, other: o.service != "", since: since, print: list.Follow(e.Streams.Out, e.Output)}
	found, err := r.find(ctx, names)
	if err != nil {
		return err
	}
	if len(found) > 1 {
		for _, i := range found {
			p.names = append(p.names, i.Name)
		}
	}
	if o.follow {
		return followLogs(ctx, r, p, names, found)
	}
	chunks, err := r.read(ctx, found)
	if err != nil {
		return err
	}
	if err := p.all(chunks, o.lines(e)); err != nil {
		return err
	}
	p.hint(chunks, o.service == "")
	return nil
}

// instances are the names that are meant: those that were typed, also of instances that are
// gone, or those that the selection picks.
func (o logOptions) instances(ctx context.Context, e *cli.Env) ([]string, error) {
	if !o.picks() {
		return o.names, nil
	}
	return o.resolve(ctx, e, remote{}, cli.Mutation{}, bulk{verb: "logs"})
}

// lines is how many are printed at most; 0: all.
func (o logOptions) lines(e *cli.Env) int {
	if o.tail < 0 && e.Output.Screen(e.Streams.Out) {
		return mostOnTerminal
	}
	return max(o.tail, 0)
}

// logReader reads the logs of instances.
type logReader struct {
	e        *cli.Env
	o        logOptions
	service  logs.Service
	files    host.Files
	places   ledger.Places
	settings instance.Settings
}

func (r *logReader) base(ctx context.Context) (host.Files, ledger.Places, instance.Settings, error) {
	h, places, err := r.e.Places()
	if err != nil {
		return nil, places, instance.Settings{}, err
	}
	s, _, err := r.e.Instances(ctx)
	return h.Files(), places, s, err
}

// find finds all that are named, before the first is read.
func (r *logReader) find(ctx context.Context, names []string) ([]logs.Instance, error) {
	view, err := r.e.View(ctx)
	if err != nil {
		return nil, err
	}
	var all []logs.Instance
	for _, name := range names {
		of, err := logs.Find(ctx, r.files, r.places, r.settings, view, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all, nil
}

// read reads what there is of some instances. One that has logged nothing is an error if it
// is the only one, or all are like it; else it is a warning.
func (r *logReader) read(ctx context.Context, of []logs.Instance) ([]logs.Chunk, error) {
	var all []logs.Chunk
	var none []error
	for _, i := range of {
		chunks, err := r.ofOne(ctx, i)
		if _, missing := errors.AsType[*cli.NotFoundError](err); missing {
			none = append(none, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, chunks...)
	}
	if len(none) == len(of) {
		return nil, none[0]
	}
	for _, err := range none {
		r.e.Progress.Warn(err)
	}
	return all, nil
}

// ofOne is what one instance has logged: its zone's logs, else those of the newest bundle.
func (r *logReader) ofOne(ctx context.Context, i logs.Instance) ([]logs.Chunk, error) {
	if !r.o.previous {
		chunks, err := r.present(ctx, i)
		if len(chunks) > 0 || err != nil {
			return chunks, err
		}
	}
	past, err := logs.Past(ctx, r.files, r.places, r.settings, i.ID)
	if err != nil {
		return nil, err
	}
	taken, err := r.e.Bundles(ctx)
	if err != nil {
		return nil, err
	}
	kept, chunks, err := logs.Kept(r.files, past, taken, r.service)
	switch {
	case errors.Is(err, fs.ErrNotExist) && r.service != "" && r.service != logs.All:
		return nil, &cli.NotFoundError{What: fmt.Sprintf("a log of service %q of instance %s", r.service, i.Name), List: "sledctl instance logs " + i.Name + " --service all"}
	case errors.Is(err, fs.ErrNotExist):
		return nil, &cli.NotFoundError{What: "a log of instance " + i.Name, List: "sledctl zone bundle list"}
	case err != nil:
		return nil, err
	}
	for n := range chunks {
		chunks[n].Instance = i.Name
	}
	r.e.Progress.Say("of bundle %s, taken %s from zone %s", kept.ID, terminal.Ago(r.e.Now(), kept.Time), kept.Zone)
	return chunks, nil
}

// present are the logs of the zone that an instance has; none, if it has no zone.
func (r *logReader) present(ctx context.Context, i logs.Instance) ([]logs.Chunk, error) {
	var chunks []logs.Chunk
	all, err := r.current(ctx, []string{i.ID})
	for _, l := range all {
		if err != nil {
			break
		}
		var c logs.Chunk
		if c, err = l.Read(r.files); err == nil {
			chunks = append(chunks, c)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return chunks, err
}

// current are where the logs are now; none, of an instance without a zone.
func (r *logReader) current(ctx context.Context, refs []string) ([]logs.Log, error) {
	view, err := r.e.View(ctx)
	if err != nil {
		return nil, err
	}
	var all []logs.Log
	for _, ref := range refs {
		own, there := logs.Current(r.settings, view, ref)
		if !there {
			continue
		}
		some, err := own.Of(r.files, r.service)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// followLogs prints what is there and what comes, until the context ends.
func followLogs(ctx context.Context, r *logReader, p *linePrinter, names []string, found []logs.Instance) error {
	for _, i := range found {
		if i.Deleted {
			return &cli.UsageError{Text: "--follow: instance " + i.Name + " was deleted, and logs nothing"}
		}
	}
	f := logs.Follower{Files: r.files, Logs: func(ctx context.Context) []logs.Log {
		all, err := r.current(ctx, names)
		if err != nil { // the next look may say more
			return nil
		}
		return all
	}}
	n := r.o.lines(r.e)
	for {
		chunks, err := f.Next(ctx)
		if err != nil {
			return err
		}
		for _, c := range chunks {
			if c.Another {
				p.e.Progress.Say("%s: a new log from here", c.Instance)
			}
		}
		if err := p.all(chunks, n); err != nil {
			return err
		}
		n, p.since = 0, time.Time{}
	}
}

// check refuses what cannot be, and says since when lines are wanted.
func (o logOptions) check(now time.Time) (since time.Time, err error) {
	switch {
	case o.follow && o.previous:
		return since, &cli.UsageError{Text: "--follow and --previous cannot both be given: a bundle does not grow"}
	case o.raw && o.since != "":
		return since, &cli.UsageError{Text: "--raw and --since cannot both be given: times are not read then"}
	case o.raw && o.service == string(logs.All):
		return since, errRaw
	case o.tail < -1:
		return since, &cli.UsageError{Text: fmt.Sprintf("--tail %d: want a number of lines, 0 for all", o.tail)}
	}
	return cli.Since(now, o.since)
}
