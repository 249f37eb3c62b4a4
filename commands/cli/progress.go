package cli

import (
	"fmt"
	"slices"
	"sync"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/plan"
)

// Progress tells on stderr what is going on: on a terminal one line that is
// gone at the end, elsewhere nothing but warnings. Waits that have become long
// say so everywhere.
type Progress struct {
	mu      sync.Mutex
	streams *terminal.Streams
	status  *terminal.Status
	running []plan.Action
	stands  []plan.Action // changes that were made and not undone
	verbose bool
}

func newProgress(streams *terminal.Streams) *Progress { return &Progress{streams: streams} }

func (p *Progress) line() *terminal.Status {
	if p.status == nil {
		p.status = terminal.NewStatus(p.streams.Err)
	}
	return p.status
}

// observe takes an event of a plan that is being applied.
func (p *Progress) observe(e plan.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case e.Kind == plan.Finished && e.Action.Change != plan.Wait:
		p.stands = append(p.stands, e.Action)
	case e.Kind == plan.Undone:
		p.stands = slices.DeleteFunc(p.stands, func(a plan.Action) bool { return a.ID == e.Action.ID && a.Object == e.Action.Object })
	}
	switch e.Kind {
	case plan.Started, plan.Undoing:
		p.running = append(p.running, e.Action)
	default:
		for i, a := range p.running {
			if a.ID == e.Action.ID {
				p.running = append(p.running[:i], p.running[i+1:]...)
				break
			}
		}
		if p.verbose {
			_ = p.line().Println(p.ended(e))
		}
	}
	if len(p.running) == 0 {
		p.line().Set("")
		return
	}
	last := p.running[len(p.running)-1]
	more := ""
	if n := len(p.running) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	undo := ""
	if e.Kind == plan.Undoing {
		undo = "undo "
	}
	p.line().Set(undo + last.Step.Verb() + "  " + last.Object + more)
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

// Phase shows how far a migration has come.
func (p *Progress) Phase(what, phase string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.verbose {
		_ = p.line().Println("sledctl: " + terminal.Printable(what+": "+phase))
		return
	}
	p.line().Set(what + ": " + phase)
}

// Say prints a line of narration, on a terminal only.
func (p *Progress) Say(format string, args ...any) {
	if p.streams.Err.Terminal {
		p.mu.Lock()
		defer p.mu.Unlock()
		_ = p.line().Println(terminal.Printable(fmt.Sprintf(format, args...)))
	}
}

// Tell prints a line of narration, wherever it goes.
func (p *Progress) Tell(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.line().Println("sledctl: " + terminal.Printable(text))
}

// Warn prints what went wrong and changes nothing.
func (p *Progress) Warn(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.line().Println("sledctl: " + p.streams.Err.Style(terminal.Warn, "warning:") + " " + terminal.Printable(err.Error()))
}

// changed reports whether something was changed on the host that stands.
func (p *Progress) changed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stands) > 0
}

func (p *Progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status != nil {
		p.status.Clear()
	}
}
