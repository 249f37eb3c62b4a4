package instance

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/comparison"
	"github.com/sledctl/sledctl/sled/instance/record"
)

// rowList is how the rows of a comparison are printed.
func rowList() terminal.List[comparison.Row] {
	short := terminal.ShortPools(nil)
	value := func(name string, of func(comparison.Row) string) terminal.Column[comparison.Row] {
		return terminal.Column[comparison.Row]{Name: name, Value: of, Human: func(r comparison.Row) string { return short(of(r)) }}
	}
	style := func(r comparison.Row) terminal.Style {
		switch r.Verdict {
		case comparison.Differs:
			return terminal.Warn
		case comparison.Same:
			return terminal.Faint
		}
		return terminal.Plain
	}
	columns := []terminal.Column[comparison.Row]{
		value("field", func(r comparison.Row) string { return r.Field }),
		value("wanted", func(r comparison.Row) string { return r.Wanted }),
		value("observed", func(r comparison.Row) string { return r.Observed }),
		value("verdict", func(r comparison.Row) string { return r.Verdict }),
		value("change", func(r comparison.Row) string { return r.Change }),
	}
	columns[3].Usual = comparison.Same
	columns[2].Human = func(r comparison.Row) string { return short(cmp.Or(r.Change, r.Observed)) }
	for i := range columns {
		columns[i].Style = style
	}
	return terminal.List[comparison.Row]{Kind: "Difference", Name: func(r comparison.Row) string { return r.Field }, Columns: columns, Table: []string{"field", "wanted", "observed", "verdict"}}
}

// screen prints one instance for people: its state, what to type, what is wanted next to
// what is observed, and what it is made of on the host.
func screen(s *terminal.Stream, now time.Time, c comparison.Comparison, next []comparison.Next) error {
	var b bytes.Buffer
	shown := cli.ShowInstance(c.Instance)
	state := cli.ShownState(shown)
	since := lasting(now, shown)
	if c.Reason != "" {
		since += ": " + terminal.ShortPools(nil)(c.Reason)
	}
	lines := terminal.Wrapped(since, s.Width()-len(c.Name+state)-4)
	b.WriteString(s.Style(terminal.Strong, c.Name) + "  " + s.Style(cli.StateStyle(shown), state) + "  " + indented(lines, len(c.Name+state)+4))
	b.WriteString(toType(s, next))
	b.WriteString("\n")
	if _, err := s.Write(b.Bytes()); err != nil {
		return err
	}
	if err := rowList().Print(s, terminal.Output{Format: terminal.FormatTable}, c.Rows); err != nil {
		return err
	}
	b.Reset()
	b.WriteString("\n")
	for _, part := range parts(now, c) {
		lines := terminal.Wrapped(terminal.ShortPools(nil)(part.text), s.Width()-partWidth)
		fmt.Fprintf(&b, "%-*s%s", partWidth, part.label, indented(lines, partWidth))
	}
	_, err := s.Write(b.Bytes())
	return err
}

// toType are the lines of what to type.
func toType(s *terminal.Stream, all []comparison.Next) string {
	var b strings.Builder
	for i, next := range all {
		label := "next: "
		if i > 0 {
			label = "      "
		}
		b.WriteString(label + s.Style(terminal.Strong, strings.Join(terminal.Wrapped(next.Command, s.Width()-len(label)), "\n      ")))
		if len(label)+len(next.Command)+len(next.Does)+3 <= s.Width() {
			b.WriteString("   " + next.Does)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// lasting says how long an instance has been in its state: how long its VM is up, or how long
// ago it ended.
func lasting(now time.Time, i cli.Instance) string {
	age := terminal.Age(now, i.Since)
	if i.Since.IsZero() {
		age = "less than " + terminal.Bound(now, i.Updated)
	}
	switch i.State {
	case record.Running:
		return "up " + age
	case record.Failed, record.Stopped:
		return age + " ago"
	}
	return "for " + age
}

// partWidth is the width of the labels of parts.
const partWidth = 11

// indented are lines, of which all but the first begin in this column.
func indented(lines []string, column int) string {
	return strings.Join(lines, "\n"+strings.Repeat(" ", column)) + "\n"
}

// part is a line of what an instance is made of.
type part struct{ label, text string }

// parts are the zone, the Propolis, the VM and the record of an instance.
func parts(now time.Time, c comparison.Comparison) []part {
	var all []part
	if run := c.Incarnation; run != nil {
		zone := run.Zone + ", not there"
		if c.Zone != nil {
			zone = run.Zone + ", " + string(c.Zone.State)
		}
		if run.Base != "" {
			zone += ", cloned from " + run.Base
		}
		if run.Boot != c.Boot {
			zone += ", from before the reboot of the sled"
		}
		all = append(all, part{"zone", zone + ", in " + run.Dataset}, part{"propolis", answers(c) + ", id " + run.PropolisID})
	}
	work := "no process works on it"
	if c.Busy != nil {
		work = fmt.Sprintf("%s works on it, pid %d, for %s", c.Busy.Verb, c.Busy.PID, terminal.Age(now, c.Busy.Since))
	}
	text := fmt.Sprintf("id %s, generation %d, written %s; %s", c.ID, c.Generation, terminal.Ago(now, c.Updated), work)
	return append(all, part{"record", text})
}

func answers(c comparison.Comparison) string {
	switch {
	case c.Answers != "":
		return c.Answers + " answers"
	case c.State == record.Failed || c.State == record.Unknown:
		return "it has no VM, or does not answer"
	}
	return "was not asked"
}

// got is an instance as instance get prints it in JSON.
type got struct {
	cli.Instance
	Differs []comparison.Row `json:"differs,omitempty"`
	Next    []string         `json:"next,omitempty"`
}

func gotOf(c comparison.Comparison, next []comparison.Next) got {
	g := got{Instance: cli.ShowInstance(c.Instance), Differs: c.Differing()}
	for _, n := range next {
		g.Next = append(g.Next, n.Command)
	}
	return g
}

// gotList prints one such instance in JSON.
func gotList() terminal.List[got] {
	return terminal.List[got]{Kind: "Instance", Name: func(g got) string { return g.Name }, Columns: []terminal.Column[got]{{Name: "name", Value: func(g got) string { return g.Name }}}}
}
