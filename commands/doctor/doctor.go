// Package doctor is sledctl doctor.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/doctor"
)

// New is the command doctor.
func New(env *cli.Env) *cobra.Command {
	var ignore []string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Verify that this host is able to run VMs",
		Long: `Verify that this host is able to run VMs: its system, privileges and kernel, propolis-server, pools and the place of the ledger, memory,
links, other owners of zones and VMs, what zones are installed from, and the services of SMF. Each check is ok, warn or fail, with what
was seen and the command or the page that repairs it.

The command changes nothing on the sled and takes at most 1 s. A question that the host does not answer in that time is a warning. The
last result is kept until the sled reboots, and sledctl status shows it in one line. Exit 8 if a check fails.

docs/doctor.md lists the checks. --ignore leaves one out, e.g. where you know better.`,
		Example: `  sledctl doctor
  sledctl doctor --ignore kernel
  sledctl doctor -o json`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return run(ctx, env, ignore) }),
	}
	cmd.Flags().StringArrayVar(&ignore, "ignore", nil, "`ID` of a check to leave out (repeatable)")
	env.AddOutput(cmd)
	env.Complete(cmd, "ignore", func() (ids []string) {
		for _, c := range doctor.Checks() {
			ids = append(ids, c.ID)
		}
		return ids
	})
	return cmd
}

func run(ctx context.Context, e *cli.Env, ignore []string) error {
	if err := checkList().Check(e.Output); err != nil {
		return err
	}
	s, h, err := settings(e)
	if err != nil {
		return err
	}
	r, err := s.Examine(ctx, h, e.Now, ignore)
	if err != nil {
		return err
	}
	if err := s.Keep(ctx, h.Files(), r); err != nil { // a user without privileges cannot
		e.Progress.Warn(err)
	}
	return errors.Join(r.Err(), printed(e, r))
}

// printed prints a result: on a terminal for people, else as lines or as JSON.
func printed(e *cli.Env, r doctor.Result) error {
	out := e.Streams.Out
	screen := e.Output.Table(out) && e.Output.Columns == nil
	for i := range r.Checks {
		if !screen {
			r.Checks[i].Next = e.Afar.Each(r.Checks[i].Next)
		}
	}
	switch {
	case e.Output.Format == terminal.FormatJSON:
		return terminal.List[doctor.Result]{Kind: "Doctor"}.PrintOne(out, e.Output, r)
	case screen:
		_, err := io.WriteString(out, text(r, e.Afar.Typed, out.Width(), out.Style))
		return err
	}
	return checkList().Print(out, e.Output, r.Checks)
}

func checkList() terminal.List[doctor.Checked] {
	type column = terminal.Column[doctor.Checked]
	return terminal.List[doctor.Checked]{Kind: "Check", Name: func(c doctor.Checked) string { return c.ID }, Columns: []column{
		{Name: "verdict", Value: func(c doctor.Checked) string { return string(c.Verdict) }, Style: func(c doctor.Checked) terminal.Style { return styleOf(c.Verdict) }},
		{Name: "id", Value: func(c doctor.Checked) string { return c.ID }},
		{Name: "group", Value: func(c doctor.Checked) string { return c.Group }},
		{Name: "evidence", Value: func(c doctor.Checked) string { return c.Evidence }},
		{Name: "hands", Value: func(c doctor.Checked) string { return c.Hands }},
		{Name: "next", Value: func(c doctor.Checked) string { return strings.Join(c.Next, " && ") }},
		{Name: "page", Value: func(c doctor.Checked) string { return c.Page }, Extra: true},
	}}
}

func styleOf(v doctor.Verdict) terminal.Style {
	switch v {
	case doctor.Fail:
		return terminal.Bad
	case doctor.Warn:
		return terminal.Warn
	}
	return terminal.Good
}

// text is a result as people see it: each check with its evidence, wrapped and not cut,
// and how it is repaired.
func text(r doctor.Result, typed func(string) string, width int, style func(terminal.Style, string) string) string {
	longest := 0
	for _, c := range r.Checks {
		longest = max(longest, len(c.ID))
	}
	const verdicts = 4
	indent := verdicts + 2 + longest + 2
	if width-indent < 30 { // below the name where there is no room behind it
		indent = verdicts + 2
	}
	var b strings.Builder
	for _, c := range r.Checks {
		head := fmt.Sprintf("%-*s  ", verdicts, c.Verdict)
		lines := terminal.Wrapped(c.Evidence, width-indent)
		if name := c.ID + "  "; indent > verdicts+2 {
			head += fmt.Sprintf("%-*s  ", longest, c.ID)
		} else {
			lines = terminal.Wrapped(name+c.Evidence, width-indent)
		}
		b.WriteString(style(styleOf(c.Verdict), head[:verdicts]) + head[verdicts:])
		blank := strings.Repeat(" ", indent)
		b.WriteString(strings.Join(lines, "\n"+blank) + "\n")
		if c.Verdict == doctor.OK {
			continue
		}
		for _, line := range terminal.Wrapped(typed(c.Repair()), width-indent) {
			b.WriteString(blank + style(terminal.Strong, line) + "\n")
		}
	}
	fmt.Fprintf(&b, "%s; %s\n", r.Line(), terminal.Elapsed(time.Duration(r.Elapsed)*time.Millisecond))
	return b.String()
}
