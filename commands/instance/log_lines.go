package instance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/logs"
)

// shownLine is a line of a log, as it is printed.
type shownLine struct {
	Time     *time.Time                 `json:"time,omitempty"`
	Instance string                     `json:"instance"`
	Zone     string                     `json:"zone"`
	Service  string                     `json:"service"`
	Writer   string                     `json:"writer"`
	Level    string                     `json:"level,omitempty"`
	Text     string                     `json:"text"`
	Fields   map[string]json.RawMessage `json:"fields,omitempty"`
	Source   string                     `json:"source"`           // zone or bundle
	Bundle   string                     `json:"bundle,omitempty"` // that has the line
}

func lineList() terminal.List[shownLine] {
	type column = terminal.Column[shownLine]
	return terminal.List[shownLine]{Kind: "LogLine", Name: func(l shownLine) string { return l.Text }, Columns: []column{
		{Name: "time", Value: func(l shownLine) string { return l.at(time.RFC3339) }, Human: func(l shownLine) string { return l.at(time.TimeOnly) }},
		{Name: "instance", Value: func(l shownLine) string { return l.Instance }},
		{Name: "service", Value: func(l shownLine) string { return l.Service }},
		{Name: "level", Value: func(l shownLine) string { return l.Level }, Style: lineStyle},
		{Name: "text", Value: func(l shownLine) string { return l.Text }},
		{Name: "writer", Extra: true, Value: func(l shownLine) string { return l.Writer }},
		{Name: "zone", Extra: true, Value: func(l shownLine) string { return l.Zone }},
		{Name: "source", Extra: true, Value: func(l shownLine) string { return l.Source }},
		{Name: "bundle", Extra: true, Value: func(l shownLine) string { return l.Bundle }},
	}}
}

// show is a line as it is printed; the time is of zone, if that is not nil.
func show(e logs.Entry, zone *time.Location) shownLine {
	l := shownLine{
		Instance: e.Log.Instance, Zone: e.Log.Zone, Service: e.Log.Service, Writer: e.Writer, Level: e.Level, Text: e.Text, Fields: e.Fields,
		Source: "zone", Bundle: e.Bundle,
	}
	if e.Bundle != "" {
		l.Source = "bundle"
	}
	if !e.Time.IsZero() {
		at := e.Time
		if zone != nil {
			at = at.In(zone)
		}
		l.Time = &at
	}
	return l
}

func (l shownLine) at(layout string) string {
	if l.Time == nil {
		return ""
	}
	return l.Time.Format(layout)
}

func lineStyle(l shownLine) terminal.Style {
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
	e     *cli.Env
	names []string // that stand in front of lines; none, if they are of one instance
	raw   bool
	since time.Time
	print func(shownLine) error
	other bool // there are other services than Propolis'
	wide  int  // the widest word for whose line it is, so far
}

// all prints the last n lines of those that are selected; 0: all of them.
func (p *linePrinter) all(chunks []logs.Chunk, n int) error {
	if p.raw {
		if len(chunks) > 1 {
			return errRaw
		}
		for _, c := range chunks {
			return p.asLogged(c.Data, n)
		}
		return nil
	}
	var parts [][]logs.Entry
	for _, c := range chunks {
		parts = append(parts, c.Entries(p.e.Now().Local()))
	}
	lines := logs.Merged(parts...)
	if !p.since.IsZero() {
		lines = logs.Since(lines, p.since)
	}
	return p.lines(logs.Last(lines, n))
}

// asLogged prints the last n lines as they are; on a terminal, without what it would act
// upon.
func (p *linePrinter) asLogged(data []byte, n int) error {
	lines := bytes.SplitAfter(data, []byte("\n"))
	if last := len(lines) - 1; len(lines[last]) == 0 {
		lines = lines[:last]
	}
	if n > 0 && len(lines) > n {
		lines = lines[len(lines)-n:]
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

func (p *linePrinter) lines(all []logs.Entry) error {
	screen := p.e.Output.Screen(p.e.Streams.Out)
	var zone *time.Location
	if screen {
		zone = p.e.Now().Location()
	}
	for _, l := range all {
		p.wide = max(p.wide, len(logs.Propolis), ansi.StringWidth(p.of(l)))
	}
	for _, l := range all {
		print := p.print
		if screen {
			print = func(shown shownLine) error { return p.forPeople(shown, p.of(l)) }
		}
		if err := print(show(l, zone)); err != nil {
			return err
		}
	}
	return nil
}

// of is who says it; where there are several services, whose log it is.
func (p *linePrinter) of(l logs.Entry) string {
	switch {
	case !p.other:
		return l.Writer
	case l.Log.Own:
		return logs.Propolis
	}
	return terminal.Printable(strings.TrimSuffix(l.Log.Service, ":default"))
}

// forPeople prints the clock time, whose line it is, who says it, and the text, wrapped.
func (p *linePrinter) forPeople(l shownLine, of string) error {
	out := p.e.Streams.Out
	text := l.Text
	if l.Level != "" && l.Level != "info" {
		text = l.Level + " " + text
	}
	head := fmt.Sprintf("%-8s  %s%s  ", l.at(time.TimeOnly), p.name(l), padRight(of, p.wide))
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

// name is whose line it is, if several instances are meant.
func (p *linePrinter) name(l shownLine) string {
	if p.names == nil {
		return ""
	}
	width := 0
	for _, name := range p.names {
		width = max(width, ansi.StringWidth(terminal.Printable(name)))
	}
	return padRight(terminal.Printable(l.Instance), width) + "  "
}

func padRight(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-ansi.StringWidth(text)))
}

// hint says what may be typed next, to people: how a service in maintenance is repaired, or
// where more is to be read.
func (p *linePrinter) hint(chunks []logs.Chunk, own bool) {
	if len(chunks) != 1 || p.raw || !p.e.Output.Screen(p.e.Streams.Out) {
		return
	}
	switch c := chunks[0]; {
	case c.Bundle != "":
	case inMaintenance(c.Entries(p.e.Now())):
		p.e.Progress.Say("-- the service is in maintenance; sledctl instance ensure %s rebuilds it", c.Instance)
	case own:
		p.e.Progress.Say("-- --service all: every service of the zone; the guest's output: sledctl instance console %s --history", c.Instance)
	}
}

// inMaintenance reports whether that is the last that svc.startd wrote about a service: in words,
// or as the status of a method that leads there at once (SMF_EXIT_ERR_FATAL and _CONFIG,
// smf_method(7)).
func inMaintenance(all []logs.Entry) bool {
	for _, l := range slices.Backward(all) {
		if l.Writer == logs.SMF {
			return strings.Contains(l.Text, "maintenance") || strings.HasSuffix(l.Text, "exited with status 95.") || strings.HasSuffix(l.Text, "exited with status 96.")
		}
	}
	return false
}
