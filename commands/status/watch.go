package status

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/status"
)

// beat is how often a watch looks if nothing else is said.
const beat = 2 * time.Second

// watch shows the status again and again: on a terminal in place until q or ^C, else the
// line for monitoring whenever it changes.
func watch(ctx context.Context, e *cli.Env, f flags) error {
	first, err := look(ctx, e) // what it warns of is printed before the view
	if err != nil {
		return err
	}
	if !e.Streams.Out.Erase || f.check || !e.Output.Table(e.Streams.Out) {
		return follow(ctx, e, f, first)
	}
	live, err := terminal.NewLive(e.Streams.In, e.Streams.Out)
	if err != nil {
		return err
	}
	err = redraw(ctx, e, f, live, first)
	return cmp.Or(live.Close(), err)
}

// redraw draws the screen until somebody leaves.
func redraw(ctx context.Context, e *cli.Env, f flags, live *terminal.Live, now looked) error {
	const interrupt = 3 // ^C, as a raw terminal gives it
	for {
		if err := live.Draw(show(e, now.Status, f)); err != nil {
			return err
		}
		next := time.NewTimer(f.watch)
		for waiting := true; waiting; {
			select {
			case key := <-live.Keys():
				if key == 'q' || key == interrupt {
					return nil
				}
			case <-ctx.Done():
				return leave(ctx)
			case <-next.C:
				waiting = false
			}
		}
		again, err := look(ctx, e)
		switch {
		case ctx.Err() != nil:
			return leave(ctx)
		case err != nil:
			return err
		}
		now = again
	}
}

// leave is the end of a watch on a terminal: an interruption is how one leaves it.
func leave(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != cli.ErrInterrupted {
		return cause
	}
	return nil
}

// printChange prints the line for monitoring, or with -o json all of the status.
func printChange(e *cli.Env, f flags, s status.Status) error {
	if e.Output.Format == terminal.FormatJSON && !f.check {
		return printJSON(e, s)
	}
	_, err := fmt.Fprintln(e.Streams.Out, s.Line())
	return err
}

// follow prints whenever the line changes.
func follow(ctx context.Context, e *cli.Env, f flags, now looked) error {
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
		if now, err = look(ctx, e); err != nil {
			return err
		}
	}
}
