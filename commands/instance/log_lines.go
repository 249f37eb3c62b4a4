package instance

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/logs"
)

// shownLine is a line of a log, as it is printed.
type shownLine struct {
	Time     *time.Time `json:"time,omitempty"`
	Instance string     `json:"instance"`
	Source   string     `json:"source"`
	Level    string     `json:"level,omitempty"`
	Text     string     `json:"text"`
	Bundle   string     `json:"bundle,omitempty"` // that has the line; empty: the zone itself
}

func lineList() terminal.List[shownLine] {
	type column = terminal.Column[shownLine]
	return terminal.List[shownLine]{Kind: "LogLine", Name: func(l shownLine) string { return l.Text }, Columns: []column{
		{Name: "time", Value: func(l shownLine) string { return l.at(time.RFC3339) }, Human: func(l shownLine) string { return l.at(time.TimeOnly) }},
		{Name: "instance", Value: func(l shownLine) string { return l.Instance }},
		{Name: "source", Value: func(l shownLine) string { return l.Source }},
		{Name: "level", Value: func(l shownLine) string { return l.Level }, Style: lineStyle},
		{Name: "text", Value: func(l shownLine) string { return l.Text }},
	}}
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

// linePrinter prints the lines of one instance.
type linePrinter struct {
	e     *cli.Env
	name  string
	from  string // the bundle; empty: it is the zone's own log
	raw   bool
	print func(shownLine) error
}

// all prints the lines that are selected.
func (p *linePrinter) all(data []byte, o logOptions, since time.Time) error {
	n := o.tail
	if n < 0 && p.e.Output.Screen(p.e.Streams.Out) {
		n = mostOnTerminal
	}
	if p.raw {
		return p.asLogged(data, n)
	}
	lines := logs.Parse(data, p.e.Now().Local())
	if !since.IsZero() {
		lines = logs.Since(lines, since)
	}
	return p.lines(logs.Last(lines, max(n, 0)))
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

func (p *linePrinter) lines(all []logs.Line) error {
	for _, l := range all {
		shown := shownLine{Instance: p.name, Source: l.Source, Level: l.Level, Text: l.Text, Bundle: p.from}
		if !l.Time.IsZero() {
			shown.Time = &l.Time
		}
		print := p.print
		if p.e.Output.Screen(p.e.Streams.Out) {
			print = p.forPeople
			if shown.Time != nil {
				*shown.Time = shown.Time.In(p.e.Now().Location())
			}
		}
		if err := print(shown); err != nil {
			return err
		}
	}
	return nil
}

// forPeople prints the clock time, who says it, and the text, wrapped.
func (p *linePrinter) forPeople(l shownLine) error {
	out := p.e.Streams.Out
	text := l.Text
	if l.Level != "" && l.Level != "info" {
		text = l.Level + " " + text
	}
	head := fmt.Sprintf("%-8s  %-8s  ", l.at(time.TimeOnly), l.Source)
	lines := terminal.Wrapped(terminal.Printable(text), out.Width()-len(head))
	for i, line := range lines {
		lines[i] = out.Style(lineStyle(l), line)
	}
	_, err := io.WriteString(out, head+indented(lines, len(head)))
	return err
}
