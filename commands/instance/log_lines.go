package instance

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/uuid"

	"github.com/sledctl/sledctl/agent/api"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/logs"
)

func lineList() terminal.List[api.LogLine] {
	type column = terminal.Column[api.LogLine]
	return terminal.List[api.LogLine]{Kind: "LogLine", Name: func(l api.LogLine) string { return l.Text }, Columns: []column{
		{Name: "time", Value: func(l api.LogLine) string { return at(l, time.RFC3339) }, Human: func(l api.LogLine) string { return at(l, time.TimeOnly) }},
		{Name: "instance", Value: func(l api.LogLine) string { return l.Instance }},
		{Name: "service", Value: func(l api.LogLine) string { return l.Service }},
		{Name: "level", Value: func(l api.LogLine) string { return l.Level }, Style: lineStyle},
		{Name: "text", Value: func(l api.LogLine) string { return l.Text }},
		{Name: "writer", Extra: true, Value: func(l api.LogLine) string { return l.Writer }},
		{Name: "zone", Extra: true, Value: func(l api.LogLine) string { return l.Zone }},
		{Name: "source", Extra: true, Value: func(l api.LogLine) string { return l.Source }},
		{Name: "bundle", Extra: true, Value: func(l api.LogLine) string { return l.Bundle }},
	}}
}

// at is the time of a line; empty: it is not known.
func at(l api.LogLine, layout string) string {
	if l.Time == nil {
		return ""
	}
	return l.Time.Format(layout)
}

func lineStyle(l api.LogLine) terminal.Style {
	switch l.Level {
	case "warn":
		return terminal.Warn
	case "error", "fatal":
		return terminal.Bad
	}
	return terminal.Plain
}

// linePrinter prints the lines of logs.
type linePrinter struct {
	e       *cli.Env
	print   func(api.LogLine) error
	other   bool // there are other services than Propolis'
	several bool // instances: their names stand in front
	name    int  // the widest name, so far
	wide    int  // the widest word for whose line it is, so far
	last    []api.LogLine
}

// of takes the names of the instances whose lines are printed.
func (p *linePrinter) of(names []string) {
	p.several = len(names) > 1
	for _, name := range names {
		if uuid.Validate(name) != nil {
			p.name = max(p.name, ansi.StringWidth(terminal.Printable(name)))
		}
	}
}

// asLogged prints lines as they are; on a terminal, without what it would act upon.
func (p *linePrinter) asLogged(data []byte) error {
	lines := bytes.SplitAfter(data, []byte("\n"))
	if last := len(lines) - 1; len(lines[last]) == 0 {
		lines = lines[:last]
	}
	for _, line := range lines {
		if p.e.Streams.Out.Terminal {
			line = []byte(terminal.Printable(strings.TrimRight(string(line), "\r\n")) + "\n")
		}
		if _, err := p.e.Streams.Out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// all prints lines, in the order in which they are.
func (p *linePrinter) all(lines []api.LogLine, _ bool) error {
	p.last = lines
	if !p.e.Output.Screen(p.e.Streams.Out) {
		for _, l := range lines {
			if err := p.print(l); err != nil {
				return err
			}
		}
		return nil
	}
	for _, l := range lines {
		p.name = max(p.name, ansi.StringWidth(terminal.Printable(l.Instance)))
		p.wide = max(p.wide, len(logs.Propolis), ansi.StringWidth(p.whose(l)))
	}
	for _, l := range lines {
		if l.Time != nil {
			at := l.Time.In(p.e.Now().Location())
			l.Time = &at
		}
		if err := p.forPeople(l, p.whose(l)); err != nil {
			return err
		}
	}
	return nil
}

// whose is who says it; where there are several services, whose log it is.
func (p *linePrinter) whose(l api.LogLine) string {
	switch {
	case !p.other:
		return terminal.Printable(l.Writer)
	case strings.HasPrefix(l.Service, "svc:/"): // of others it is the name of the log
		return logs.Propolis
	}
	return terminal.Printable(strings.TrimSuffix(l.Service, ":default"))
}

// forPeople prints the clock time, whose line it is, who says it, and the text, wrapped.
func (p *linePrinter) forPeople(l api.LogLine, of string) error {
	out := p.e.Streams.Out
	text := l.Text
	if l.Level != "" && l.Level != "info" {
		text = l.Level + " " + text
	}
	head := fmt.Sprintf("%-8s  %s%s  ", at(l, time.TimeOnly), p.named(l), padRight(of, p.wide))
	room := out.Width() - ansi.StringWidth(head)
	hang := ansi.StringWidth(head)
	if room < narrow { // the text is below
		head, hang, room = strings.TrimRight(head, " ")+"\n"+strings.Repeat(" ", below), below, out.Width()-below
	}
	lines := terminal.Wrapped(terminal.Printable(text), room)
	for i, line := range lines {
		lines[i] = out.Style(lineStyle(l), line)
	}
	_, err := io.WriteString(out, head+indented(lines, hang))
	return err
}

// narrow is as little room as a text gets next to what stands before it; else it is below,
// indented.
const (
	narrow = 30
	below  = 10
)

// named is whose line it is, if several instances are meant.
func (p *linePrinter) named(l api.LogLine) string {
	if !p.several {
		return ""
	}
	return padRight(terminal.Printable(l.Instance), p.name) + "  "
}

func padRight(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// hint says what may be typed next, to people: how a service in maintenance is repaired, or
// where more is to be read. Own says that the log was of Propolis' service.
func (p *linePrinter) hint(own bool) {
	if p.several || len(p.last) == 0 || !p.e.Output.Screen(p.e.Streams.Out) {
		return
	}
	switch name := p.last[0].Instance; {
	case p.last[0].Bundle != "" || !own:
	case inMaintenance(p.last):
		p.e.Progress.Say("-- the service is in maintenance; sledctl instance ensure %s rebuilds it", name)
	default:
		p.e.Progress.Say("-- every service of the zone: --service all")
		p.e.Progress.Say("-- the guest's output: sledctl instance console %s --history", name)
	}
}

// inMaintenance reports whether that is the last that svc.startd wrote about a service: in words,
// or as the status of a method that leads there at once (SMF_EXIT_ERR_FATAL and _CONFIG,
// smf_method(7)).
func inMaintenance(all []api.LogLine) bool {
	for _, l := range slices.Backward(all) {
		if l.Writer == logs.SMF {
			return strings.Contains(l.Text, "maintenance") || strings.HasSuffix(l.Text, "exited with status 95.") || strings.HasSuffix(l.Text, "exited with status 96.")
		}
	}
	return false
}
