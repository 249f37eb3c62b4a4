package status

import (
	"context"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/status"
)

// watch shows the status again and again: on a terminal in place until q or ^C, else the
// line for monitoring whenever it changes.
func watch(ctx context.Context, e *cli.Env, f flags) error {
	first, err := f.look(ctx, e) // what it warns of is printed before the view
	if err != nil {
		return err
	}
	if !e.Streams.Out.Erase || f.check || !e.Output.Table(e.Streams.Out) {
		return follow(ctx, e, f, first)
	}
	return cli.WatchLive(ctx, e, f.watch, show(e, first.Status, f), func(ctx context.Context) (string, error) {
		now, err := f.look(ctx, e)
		return show(e, now.Status, f), err
	})
}

// printChange prints the line for monitoring, or with -o json all of the status.
func printChange(e *cli.Env, f flags, s status.Status) error {
	if e.Output.Format == terminal.FormatJSON && !f.check {
		return printJSON(e, s)
	}
	_, err := fmt.Fprintln(e.Streams.Out, s.Line())
	return err
}

// follow prints whenever the line changes, as long as a process reads it.
func follow(ctx context.Context, e *cli.Env, f flags, now looked) error {
	ctx, release := e.Streams.Out.WhileRead(ctx)
	defer release()
	printed := ""
	for {
		if line := now.Line(); line != printed {
			if err := printChange(e, f, now.Status); err != nil {
				return err
			}
			printed = line
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(f.watch):
		}
		var err error
		now, err = f.look(ctx, e)
		switch {
		case ctx.Err() != nil: // what it has seen then is not the sled
			return context.Cause(ctx)
		case err != nil:
			return err
		}
	}
}
