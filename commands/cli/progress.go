package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/commands/progress"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
)

// Progress tells on stderr what is going on: on a terminal a line that is
// gone at the end, and what has ended, elsewhere nothing but warnings. Waits that have
// become long say so everywhere.
type Progress struct {
	mu      sync.Mutex
	streams *terminal.Streams
	now     func() time.Time
	status  *terminal.Status
	board   progress.Board
	moves   []*progress.Move // that are on their way
	phase   string           // of a run that is waited for, instead of the board
	ticks   func()           // ends the redrawing; nil: nothing is drawn
	verbose bool
	form    Form
	follows bool
	copied  string              // how far the step at work has copied
	typed   func(string) string // a text with the commands that it names as they are typed here
}

// Follows says that the command shows what comes until it is interrupted, and changes nothing:
// that it ends needs no word.
func (p *Progress) Follows() {
	p.mu.Lock() // a signal may come at this moment
	defer p.mu.Unlock()
	p.follows = true
}

// Form is how progress is told.
type Form string

// The forms.
const (
	FormAuto  Form = "auto"  // on a terminal what is at work, elsewhere nothing
	FormPlain Form = "plain" // a line for each long step, and for each operation that ends
	FormJSON  Form = "json"  // a line for each event
)

// ParseForm reads --progress; empty is auto.
func ParseForm(text string) (Form, error) {
	switch f := Form(text); f {
	case "":
		return FormAuto, nil
	case FormAuto, FormPlain, FormJSON:
		return f, nil
	}
	return "", &UsageError{Text: fmt.Sprintf("--progress %q: want auto, plain or json", text)}
}

func newProgress(streams *terminal.Streams, now func() time.Time) *Progress {
	return &Progress{streams: streams, now: now, typed: func(text string) string { return text }}
}

func (p *Progress) line() *terminal.Status {
	if p.status == nil {
		p.status = terminal.NewStatus(p.streams.Err)
	}
	return p.status
}

// observe takes an event of an operation.
func (p *Progress) observe(e operation.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.board.Note(p.now(), e)
	p.phase, p.copied = "", ""
	p.moves = slices.DeleteFunc(p.moves, func(m *progress.Move) bool { return !p.board.OfMany() || m.Name == e.Name })
	switch {
	case p.form == FormJSON:
		_ = p.line().Println(progress.JSON(p.now(), e))
		return
	case p.form == FormPlain && e.Kind == operation.Over && !p.board.OfMany():
		_ = p.line().Println(terminal.Printable(progress.Ended(p.now(), cmp.Or(e.Name, e.Verb), e.Elapsed, e.Err)))
	case p.form == FormAuto && p.streams.Err.Erase && e.Kind == operation.Over && e.Err == nil && !p.board.OfMany():
		_ = p.line().Println(terminal.Printable(progress.Stays(e)))
	}
	switch e.Kind {
	case plan.Started, plan.Undoing, operation.Over:
	default:
		if p.verbose {
			_ = p.line().Println(p.ended(e.Event))
		}
	}
	p.draw()
	if p.ticks == nil && (p.form == FormPlain || p.streams.Err.Erase) {
		p.ticks = p.tick()
	}
}

// Many shows a verb on many instances: end is called with each that has ended,
// and done when all have.
func (p *Progress) Many(of int) (end func(name string, took time.Duration, err error), done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.board.Begin(p.now(), of)
	return func(name string, took time.Duration, err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.board.End(name, took, err)
			if p.form == FormPlain {
				_ = p.line().Println(terminal.Printable(progress.Ended(p.now(), name, took, err)))
			}
			p.draw()
		}, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.board.Finish()
			p.draw()
		}
}

// draw shows what is at work.
func (p *Progress) draw() {
	if p.form == FormPlain {
		for _, line := range p.board.Long(p.now()) {
			_ = p.line().Println(line)
		}
		return
	}
	if p.phase == "" && p.streams.Err.Erase { // elsewhere nobody sees it
		lines := p.board.With(p.moves, p.now(), p.streams.Err.Width()-1, p.streams.Err.Height()-4)
		if p.copied != "" && len(lines) > 0 {
			lines = append(lines, "  "+p.copied)
		}
		p.line().Set(strings.Join(lines, "\n"))
	}
}

// redrawn is how often the seconds are shown again.
const redrawn = 250 * time.Millisecond

// tick draws again and again, until the function that it returns is called.
func (p *Progress) tick() func() {
	ticker, done := time.NewTicker(redrawn), make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				p.mu.Lock()
				p.draw()
				p.mu.Unlock()
			case <-done:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(done) }
}

func (p *Progress) ended(e plan.Event) string {
	sign, style := "ok", terminal.Good
	if e.Err != nil {
		sign, style = string(e.Kind), terminal.Bad
	}
	text := fmt.Sprintf("%s %s  %s  %s", p.streams.Err.Style(style, sign), e.Action.Step.Verb(), e.Action.Object, terminal.Elapsed(e.Elapsed))
	if e.Err != nil {
		text += ": " + terminal.Printable(e.Err.Error())
	}
	return text
}

// Moves shows how far a migration has come, to a sled if that has a name: what it returns
// takes each phase.
func (p *Progress) Moves(verb, name, to string) func(phase string) {
	m := &progress.Move{Name: name, To: to, Since: p.now()}
	return func(phase string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch now := p.now(); {
		case !m.Enter(now, phase):
			return
		case p.form == FormJSON:
			_ = p.line().Println(progress.MoveJSON(now, verb, m))
		case p.form == FormPlain:
			_ = p.line().Println(m.Plain(now))
		case p.verbose:
			_ = p.line().Println("sledctl: " + terminal.Printable("instance "+name+": "+phase))
		default:
			if !slices.Contains(p.moves, m) {
				p.moves = append(p.moves, m)
			}
			p.draw()
		}
	}
}

// Copies shows how far a step has copied: what it returns takes the bytes that are done, of how many.
func (p *Progress) Copies() func(done, of int64) {
	var since time.Time
	var begun int64
	return func(done, of int64) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if since.IsZero() {
			since, begun = p.now(), done
		}
		p.copied = progress.Copied(begun, done, of, p.now().Sub(since)) // drawn with the next tick
	}
}

// awaits shows how far the run has come that is waited for.
func (p *Progress) awaits(by *operation.LockedError) {
	h := by.Holder
	if h.Steps == 0 {
		return
	}
	what, how := "waiting for "+cmp.Or(h.Name, by.Subject), fmt.Sprintf("%s, step %d/%d, %s", h.Verb, h.At, h.Steps, h.Step)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.form == FormPlain:
		_ = p.line().Println(p.now().Format(time.TimeOnly) + " " + terminal.Printable(what+" "+how))
	case p.verbose:
		_ = p.line().Println("sledctl: " + terminal.Printable(what+": "+how))
	default:
		p.phase = what + ": " + how
		p.line().Set(p.phase)
	}
}

// Say prints a line of narration, on a terminal only.
func (p *Progress) Say(format string, args ...any) {
	if p.streams.Err.Terminal {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.line().Println(terminal.Folded(terminal.Printable(p.typed(fmt.Sprintf(format, args...))), p.streams.Err.Width()))
	}
}

// Tell prints a line of narration, wherever it goes.
func (p *Progress) Tell(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.line().Println("sledctl: " + terminal.Printable(p.typed(text)))
}

// Warn prints what went wrong and changes nothing.
func (p *Progress) Warn(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := "sledctl: " + p.streams.Err.Style(terminal.Warn, "warning:") + " " + terminal.Printable(p.typed(err.Error()))
	if p.streams.Err.Terminal {
		text = terminal.Folded(text, p.streams.Err.Width())
	}
	_ = p.line().Println(text)
}

// changed reports whether something was changed on the host that stands.
func (p *Progress) changed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.board.All(), func(w *progress.Work) bool { return len(w.Stands) > 0 })
}

func (p *Progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticks != nil {
		p.ticks()
		p.ticks = nil
	}
	if p.status != nil {
		p.status.Clear()
	}
}
