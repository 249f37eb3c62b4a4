package events

import (
	"context"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/sled/events"
)

// again is how often the ledger is asked whether it has more: by the size of its files, without
// a host command.
const again = 500 * time.Millisecond

// follower prints events as they come: those that begin, and once more as they end.
type follower struct {
	e       *cli.Env
	r       *reader
	passes  func(events.Event) bool
	printed map[string]bool // ids with results
	print   func([]events.Event) error
	note    func(string)
	epoch   uint64
	seq     uint64       // that was read
	past    *events.Past // up to there, without the events that were printed
}

// follow prints what comes behind the events that are printed already, until the context
// ends.
func follow(ctx context.Context, e *cli.Env, r *reader, passes func(events.Event) bool, printed []events.Event) error {
	e.Progress.Follows()
	ctx, release := e.Streams.Out.WhileRead(ctx)
	defer release()
	f := &follower{e: e, r: r, passes: passes, printed: map[string]bool{}, print: printNew(e), note: e.Progress.Tell}
	return f.follow(ctx, printed)
}

// Follow passes on the newest n events of the sled, and what comes until the context ends,
// for an agent.
func Follow(ctx context.Context, e *cli.Env, n int, tell func([]events.Event) error) error {
	r := &reader{e: e}
	past, err := r.past(ctx)
	if err != nil {
		return err
	}
	alive, err := r.alive(ctx)
	if err != nil {
		return err
	}
	all := func(events.Event) bool { return true }
	if err := tell(past.Newest(n, all, alive)); err != nil {
		return err
	}
	f := &follower{e: e, r: r, passes: all, printed: map[string]bool{}, print: tell, note: func(string) {}}
	return f.follow(ctx, past.Newest(0, all, alive))
}

// follow passes on what comes behind the events that are printed already.
func (f *follower) follow(ctx context.Context, printed []events.Event) error {
	for _, v := range printed {
		f.printed[v.Key()] = true
	}
	book, err := f.e.Ledger(ctx)
	if err != nil {
		return err
	}
	for {
		if !book.Unchanged(f.seq) {
			view, err := f.read(ctx, book)
			if err != nil {
				return err
			}
			if f.seq = view.Seq(); f.epoch != 0 && view.Epoch().N != f.epoch {
				f.note("-- the ledger has a new epoch")
			}
			f.epoch = view.Epoch().N
			if err := f.more(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(again):
		}
	}
}

// read adds to the past what is new. The whole history is read once, and where the ledger has
// another epoch or no longer holds all that is new: an epoch may replace lines.
func (f *follower) read(ctx context.Context, book *ledger.Ledger) (ledger.View, error) {
	if f.past == nil {
		f.past = &events.Past{}
	}
	view, fresh, all, err := book.ReadSince(ctx, f.past.Seq())
	if err != nil {
		return view, err
	}
	if f.epoch == 0 || !all || view.Epoch().N != f.epoch || view.Seq() < f.past.Seq() {
		f.past, err = f.r.past(ctx)
		return view, err
	}
	for _, entry := range fresh {
		f.past.Add(entry)
	}
	return view, nil
}

// more prints what was not printed yet.
func (f *follower) more(ctx context.Context) error {
	alive, err := f.r.alive(ctx)
	if err != nil {
		return err
	}
	var fresh []events.Event
	for _, v := range f.past.Newest(0, f.passes, alive) {
		if !f.printed[v.Key()] {
			f.printed[v.Key()] = true
			fresh = append(fresh, v)
		}
	}
	f.past.Forget()
	if len(fresh) == 0 {
		return nil
	}
	return f.print(fresh)
}

// printNew prints some events in the form that was asked for, without heads.
func printNew(e *cli.Env) func([]events.Event) error {
	if e.Output.Screen(e.Streams.Out) || e.Output.Format == terminal.FormatWide {
		return func(all []events.Event) error {
			_, text, _ := strings.Cut(screenOf(e).text(all), "\n")
			_, err := e.Streams.Out.Write([]byte(text))
			return err
		}
	}
	e.Output.NoHeader = true
	one := eventList().Follow(e.Streams.Out, e.Output)
	return func(all []events.Event) error {
		for _, v := range all {
			if err := one(v); err != nil {
				return err
			}
		}
		return nil
	}
}
