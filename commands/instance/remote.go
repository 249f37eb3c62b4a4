package instance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/description"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/instance/watch"
)

// remote says that a command is to be done by the agent of a sled, and not here.
type remote = cli.Remote

// changeRemotely has an agent change instances, and prints them as they are then.
func changeRemotely(ctx context.Context, e *cli.Env, r remote, m cli.Mutation, f manyFlags, waves [][]string, state string) error {
	list := cli.InstanceList(e)
	if err := cmp.Or(list.Check(e.Output), f.checkParallel()); err != nil {
		return err
	}
	c, err := r.Client(e, m)
	if err != nil {
		return err
	}
	ask := c.Get
	if state != "" {
		ask = func(ctx context.Context, ref string) (*cli.Instance, error) { return c.Change(ctx, ref, state) }
	}
	var shown []cli.Instance
	var mu sync.Mutex
	failed := eachRemotely(ctx, f, waves, func(ctx context.Context, ref string) error {
		now, err := ask(ctx, ref)
		if err == nil && now != nil {
			mu.Lock()
			defer mu.Unlock()
			shown = append(shown, *now)
		}
		return err
	})
	switch {
	case len(shown) == 0:
		return failed
	case len(slices.Concat(waves...)) == 1:
		return list.PrintOne(e.Streams.Out, e.Output, shown[0])
	}
	return errors.Join(failed, list.Print(e.Streams.Out, e.Output, cli.ByName(shown, func(i cli.Instance) string { return i.Name })))
}

// eachRemotely asks an agent for each of many instances, one wave after the other. The error
// is that of the only one, or a *instance.PartialError.
func eachRemotely(ctx context.Context, f manyFlags, waves [][]string, ask func(ctx context.Context, ref string) error) error {
	_, err := instance.EachInWaves(ctx, waves, itself, f.parallel, func(ctx context.Context, ref string) (instance.Result, error) {
		return instance.Result{}, ask(ctx, ref)
	})
	if some, ok := errors.AsType[*instance.PartialError](err); ok && some.Of == 1 {
		return some.Failures[0].Err
	}
	return err
}

// deleteRemotely has an agent delete instances, and returns all that went wrong.
func deleteRemotely(ctx context.Context, e *cli.Env, r remote, o deleteOptions, refs []string) error {
	if err := o.checkParallel(); err != nil {
		return err
	}
	c, err := r.Client(e, o.Mutation)
	if err != nil {
		return err
	}
	switch {
	case o.yes:
		return &cli.UsageError{Text: "an agent cannot be asked for --yes", Advice: "take the protection off on the sled"}
	case o.migration != "":
		// Without it, the agent would delete what has arrived, too.
		return &cli.UsageError{Text: "an agent cannot be asked for --migration-id", Advice: "run it on the sled"}
	}
	return eachRemotely(ctx, o.manyFlags, [][]string{refs}, func(ctx context.Context, ref string) error {
		err := c.Delete(ctx, ref)
		if f, said := cli.SaidByAgent(err); said && f.Exit == failure.ExitNotFound && !o.mustExist {
			e.Progress.Tell(fmt.Sprintf("no instance %q: nothing to do", ref))
			return nil
		}
		return err
	})
}

// ensureRemotely has an agent make an instance be as flags and document say.
func ensureRemotely(ctx context.Context, e *cli.Env, r remote, o ensureOptions) error {
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--all", o.many()}, {"--migrate-from or --migration-id", o.from != "" || o.migration != ""}} {
		if flag.given {
			return &cli.UsageError{Text: "an agent cannot be asked for " + flag.name, Advice: "run it on the sled"}
		}
	}
	list := cli.InstanceList(e)
	if err := list.Check(e.Output); err != nil {
		return err
	}
	c, err := r.Client(e, o.Mutation)
	if err != nil {
		return err
	}
	wanted, err := description.Written(e.Streams, o.Flags)
	if err != nil {
		return err
	}
	description.WarnOfMachine(e.Progress, wanted)
	description.WarnOfUserData(e.Progress, wanted)
	if wanted.Ref == "" {
		return &record.InputError{Field: "instance", Value: "", Want: "a name or a UUID"}
	}
	now, err := c.Ensure(ctx, wanted, o.recreate, o.protection())
	if err != nil || now == nil {
		return err
	}
	return list.PrintOne(e.Streams.Out, e.Output, *now)
}

// answerTime is how long an agent may take to say how those are that were waited
// for.
const answerTime = 2 * time.Second

// waitRemotely has an agent wait for a state, and prints those that are in it. What
// it waited for when ctx ends, it is asked for once more.
func waitRemotely(ctx context.Context, e *cli.Env, r remote, goal record.State, refs []string) error {
	c, err := r.Client(e, cli.Mutation{})
	if err != nil {
		return err
	}
	c.Unreachable = e.Progress.Warn
	now, err := c.Await(ctx, refs, goal)
	if err == nil {
		return cli.InstanceList(e).Print(e.Streams.Out, e.Output, now)
	}
	if ctx.Err() == nil {
		return err
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
	defer cancel()
	var missing []string
	for _, ref := range refs {
		one, unknown := c.Get(last, ref)
		if _, said := cli.SaidByAgent(unknown); unknown != nil && !said {
			missing = append(missing, ref+" is unknown ("+unknown.Error()+")")
		}
		if unknown != nil || one == nil {
			continue
		}
		text := one.Name + " is " + instance.Status{State: one.State, Reason: one.Reason}.String()
		if !watch.Reached(one.State, goal) && !slices.Contains(missing, text) {
			missing = append(missing, text)
		}
	}
	if len(missing) == 0 {
		return err
	}
	return watch.NotYet(goal, missing, context.Cause(ctx))
}
