// Package top is sledctl top, a screen over the other screens: what it shows is what they
// print, and what it does is a command that can be typed.
package top

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/events"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/commands/terminal/screen"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
)

// rest is the time between two looks at so many VMs. A look sends each of them a request, and
// takes processor time from guests.
func rest(vms int) time.Duration {
	return max(cli.WatchBeat, time.Duration(vms)*20*time.Millisecond)
}

// verdictRest is the time between two looks at the sled's verdict.
func verdictRest(vms int) time.Duration { return max(5*cli.WatchBeat, 3*rest(vms)) }

// Runner runs a command line of sledctl on streams, and gives its exit code.
type Runner func(ctx context.Context, streams *terminal.Streams, environ []string, words []string) int

// New is the command top.
func New(run Runner) func(*cli.Env) *cobra.Command {
	return func(env *cli.Env) *cobra.Command {
		return &cobra.Command{
			Use:   "top",
			Short: "Show the VMs live, and act on them by keys",
			Long: `Show the VMs live, and act on them by keys, on the whole terminal; ? lists the keys. Other views are the storage, the operations at
work, the last events, and the log of what was run from here.

top shows what other commands print, and looks again every 2 s. With more than 100 VMs it looks less often, after 20 ms for each:
every 20 s with 1000. A key that needs a new look has one at once. A verb is shown as the command that it is, and runs when you type y,
as a process of its own: it goes on if top ends.`,
			Example: "  sledctl top",
			Args:    cobra.NoArgs,
			RunE: env.Run(func(ctx context.Context, _ []string) error {
				if !env.Streams.In.Terminal || !env.Streams.Out.Erase {
					return &cli.UsageError{Text: "top needs a terminal that can be drawn on", Advice: "use sledctl status --watch"}
				}
				s, err := screen.Open(env.Streams.In, env.Streams.Out)
				if err != nil {
					return &cli.UsageError{Text: fmt.Sprintf("top cannot draw on this terminal: %v", err), Advice: "use sledctl status --watch"}
				}
				return Run(ctx, Top{Env: env, Screen: s, Run: run, Start: start})
			}),
		}
	}
}

// Top is what the screen needs.
type Top struct {
	Env    *cli.Env
	Screen *screen.Screen
	Run    Runner
	// Start starts a command line as a process of its own, with the terminal if it lends it.
	// Ended gives what it has printed, and how it ended.
	Start func(environ, words []string, lends bool) (ended <-chan Ended, err error)
}

// Ended is a command that has ended.
type Ended struct {
	Printed string
	Err     error
}

// seen is what a look has found.
type seen struct {
	vms      []cli.Instance
	counters reading
	trouble  string
	verdict  verdict // zero: it was not asked for
	view     view
	lines    []string // of the view; nil: it has no page
	items    []item
	opened   *page
	panic    error // it was a defect of sledctl
}

// Run shows the screen until somebody leaves it, and closes it.
func Run(ctx context.Context, t Top) error {
	defer func() { _ = t.Screen.Close() }() // also after a panic
	ctx, cancel := t.Env.Streams.Out.WhileRead(ctx)
	m := &model{now: t.Env.Now(), afar: t.Env.Afar}
	m.pages[viewStorage].begin, m.pages[viewWork].begin = true, true
	m.pages[viewLog].raw = []string{"nothing was run from here yet"}
	m.width, m.height = t.Screen.Size()
	environ, flags := cli.Here(t.Env)
	l := loop{t, environ, flags, m, make(chan seen, 1), make(chan Ended, 16), false, false, time.Time{}, time.Time{}, false}
	t.Env.Progress.Follows()
	defer func() { // a look that is under way ends first
		if cancel(); l.looking {
			<-l.looked
		}
	}()
	l.look(ctx)
	ticker := time.NewTicker(cli.WatchBeat)
	defer ticker.Stop()
	for {
		if err := t.Screen.Show(m.draw(t.Env.Streams.Out.Style)); err != nil {
			return err
		}
		m.still = false
		select {
		case <-ctx.Done():
			if cause := context.Cause(ctx); cause != cli.ErrInterrupted {
				return cause
			}
			return nil
		case e, open := <-t.Screen.Events():
			if !open || l.event(ctx, e) {
				return nil
			}
		case s := <-l.looked:
			if s.panic != nil {
				l.looking = false
				return s.panic
			}
			l.take(s)
			if l.again {
				l.look(ctx)
			}
		case ended := <-l.ended:
			l.log(ended)
			l.look(ctx)
		case <-ticker.C:
			m.now, m.still = t.Env.Now(), true
			if !m.paused && l.due() {
				l.look(ctx)
			}
		}
	}
}

// loop is what the screen is drawn from.
type loop struct {
	Top
	environ []string
	flags   []string // of each command that is shown
	m       *model
	looked  chan seen
	ended   chan Ended
	looking bool      // a look is under way
	again   bool      // another one is wanted behind it
	began   time.Time // when the last look did
	asked   time.Time // when it last looked at the sled's verdict
	logged  bool      // a command was run
}

// due says whether it is time to look again. Only the view of VMs asks each of them.
func (l *loop) due() bool {
	pause := cli.WatchBeat
	if l.m.view == viewVMs && l.m.opened == nil {
		pause = rest(l.m.verdict.vms)
	}
	return l.m.now.Sub(l.began) >= pause-cli.WatchBeat/2 // the clock that ticks has begun at another moment
}

// event is a key, or a new size. It says whether somebody leaves.
func (l *loop) event(ctx context.Context, e screen.Event) (leaves bool) {
	if e.Key == "" {
		l.m.width, l.m.height = e.Width, e.Height
		l.look(ctx)
		return false
	}
	for _, do := range l.m.key(e.Key) {
		switch {
		case do.quit:
			return true
		case do.look:
			l.look(ctx)
		case do.open != nil:
			l.m.opened = opening(do.open)
			l.look(ctx)
		case do.run != nil:
			l.start(*do.run)
		case do.write != "":
			l.m.said = l.write(do.write)
		}
	}
	return false
}

// look looks at what is shown, aside: keys are answered meanwhile.
func (l *loop) look(ctx context.Context) {
	if l.again = l.looking; l.looking {
		return
	}
	l.looking = true
	width, height, view := l.m.width, l.m.room(), l.m.view
	var opened *page
	if l.m.opened != nil {
		copied := *l.m.opened
		opened = &copied
	}
	l.began = l.Env.Now()
	listing, verdict := l.m.listing(), l.began.Sub(l.asked) >= verdictRest(l.m.verdict.vms)-cli.WatchBeat/2
	if verdict {
		l.asked = l.began
	}
	go func() {
		s := seen{view: view, opened: opened}
		defer func() { // a panic here would end the process with the terminal taken
			if r := recover(); r != nil {
				s.panic = fmt.Errorf("%w: %v", plan.ErrPanic, r)
			}
			l.looked <- s
		}()
		switch words := views[view].words; {
		case opened != nil && opened.words != nil:
			s.opened.lines = l.show(ctx, width, height, opened.words)
		case view == viewVMs:
			var listed struct{ Items []cli.Instance }
			s.trouble = l.read(ctx, listing, &listed)
			s.vms = listed.Items
			s.counters = l.counters(ctx)
		case view == viewWork:
			s.lines, s.items = l.work(ctx, width-1)
		case view == viewEvents:
			s.lines, s.items = l.events(ctx, width-1)
		case words != nil:
			s.lines = l.show(ctx, width, height, words)
		}
		if verdict {
			s.verdict = l.verdict(ctx)
		}
	}()
}

// show is what a command prints on a terminal of that size; if it fails, with its error.
func (l *loop) show(ctx context.Context, width, height int, words []string) []string {
	streams, out, errs := terminal.Sheet(l.Env.Streams.Out, width, height)
	l.Run(ctx, streams, l.environ, slices.Concat(l.flags, words))
	text := cmp.Or(strings.TrimRight(out.String()+errs.String(), "\n"), "nothing to show")
	return strings.Split(text, "\n")
}

// read is what a command prints as JSON, or why there is none.
func (l *loop) read(ctx context.Context, words []string, into any) (trouble string) {
	streams, out, errs := terminal.Sheet(l.Env.Streams.Out, 80, 24)
	l.Run(ctx, streams, l.environ, slices.Concat(l.flags, words, []string{"-o", "json"}))
	if out.Len() > 0 && json.Unmarshal(out.Bytes(), into) == nil {
		return ""
	}
	var failed struct{ Message, Hint string }
	if json.Unmarshal(errs.Bytes(), &failed) == nil {
		return strings.TrimSuffix(failed.Message+"; "+failed.Hint, "; ")
	}
	first, _, _ := strings.Cut(strings.TrimSpace(errs.String()), "\n")
	return cmp.Or(first, "sledctl "+strings.Join(words, " ")+" printed nothing")
}

// verdict is how the sled is, as status says.
func (l *loop) verdict(ctx context.Context) verdict {
	var s struct {
		Sled      struct{ Name string }
		Verdict   string
		Problems  []struct{}
		Instances struct{ Total int }
	}
	if l.read(ctx, []string{"status"}, &s) != "" {
		return verdict{name: "sled", word: "UNKNOWN"}
	}
	return verdict{terminal.Printable(s.Sled.Name), s.Verdict, len(s.Problems), s.Instances.Total}
}

// work are the operations that are at work now, of all processes.
func (l *loop) work(ctx context.Context, width int) ([]string, []item) {
	_, env, err := l.Env.Operation()
	if err != nil {
		return terminal.Wrapped(err.Error(), width), nil
	}
	all, err := operation.AtWork(ctx, env)
	if err != nil {
		return terminal.Wrapped(err.Error(), width), nil
	}
	return atWork(l.Env.Now(), all, width)
}

// events are the newest events; of each the trace can be opened.
func (l *loop) events(ctx context.Context, width int) (lines []string, items []item) {
	lines, rows, err := events.Rows(ctx, l.Env, width, newest)
	switch {
	case err != nil:
		return terminal.Wrapped(err.Error(), width), nil
	case len(rows) == 0:
		return []string{"no event"}, nil
	}
	for _, r := range rows {
		items = append(items, item{len(lines) + r.Main, []string{"trace", r.ID}})
		lines = append(lines, r.Lines...)
	}
	return lines, items
}

// take shows what a look has found, unless another view is shown by now.
func (l *loop) take(s seen) {
	l.looking = false
	l.m.now = l.Env.Now()
	if s.verdict.word != "" {
		l.m.verdict = s.verdict
	}
	switch {
	case s.opened != nil:
		if l.m.opened != nil && l.m.opened.title == s.opened.title {
			l.m.opened.lines = s.opened.lines
		}
	case s.view == viewVMs && s.trouble != "":
		l.m.trouble = s.trouble
	case s.view == viewVMs:
		l.m.count(s.counters)
		l.m.list(s.vms)
	case s.lines != nil:
		l.m.pages[s.view].take(s.lines, s.items)
	}
}

// start runs a command that was confirmed, or that only looks.
func (l *loop) start(c command) {
	text := l.m.text(c.words)
	begin := func() error {
		ended, err := l.Start(l.environ, c.words, c.lends)
		if err != nil {
			return err
		}
		if c.lends {
			<-ended
			return nil
		}
		go func() { l.ended <- with(text, <-ended) }()
		return nil
	}
	var err error
	if c.lends {
		err = l.Screen.Lend(begin)
	} else {
		err = begin()
	}
	if err != nil {
		l.m.said = fmt.Sprintf("%s: %v", text, err)
	}
}

// with says which command it was.
func with(text string, e Ended) Ended {
	e.Printed = "$ " + text + "\n" + e.Printed
	return e
}

// log keeps what a command has printed, and says how it ended.
func (l *loop) log(e Ended) {
	lines := strings.Split(strings.TrimRight(e.Printed, "\n"), "\n")
	result := "done"
	if e.Err != nil {
		result = e.Err.Error()
	}
	lines = append(lines, result, "")
	p := &l.m.pages[viewLog]
	if !l.logged {
		p.raw, l.logged = nil, true
	}
	for _, line := range lines {
		p.raw = append(p.raw, terminal.Printable(line))
	}
	l.m.said = strings.TrimPrefix(lines[0], "$ ") + ": " + result
	if e.Err != nil {
		l.m.said += "; 5 shows what it said"
	}
}

// write writes the screen as text.
func (l *loop) write(name string) string {
	text := ansi.Strip(strings.Join(l.m.draw(func(_ terminal.Style, text string) string { return text }), "\n")) + "\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		return err.Error()
	}
	return "written to " + name
}
