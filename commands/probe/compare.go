package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/probe"
)

func newCompare(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compare FILE",
		Short: "Compare a recording with the simulated sled",
		Long: `Compare a recording with the simulated sled: lay out a simulated sled from FILE, run the same commands on it, and compare what they
print. A command is byte-equal; or parse-equal, if sledctl reads the same values from both outputs; or different. The first line that
differs is shown, and the ids of docs/unverified.md that say something about the command.

The command touches no sled. Exit 8 if a command is different.`,
		Example: `  sledctl probe compare sled.probe
  sledctl probe compare sled.probe -o json`,
		Args: cobra.ExactArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error { return runCompare(ctx, env, args[0]) }),
	}
	env.AddOutput(cmd)
	return cmd
}

func runCompare(ctx context.Context, e *cli.Env, name string) (err error) {
	if err := comparedList().Check(e.Output); err != nil {
		return err
	}
	a, err := cli.OpenArchive(e, name)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sledctl-probe.")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	sled, notes, err := cli.LayOut(ctx, filepath.Join(dir, "sled"), a)
	if err != nil {
		return err
	}
	defer sled.Close()
	for _, note := range notes {
		e.Progress.Say("not laid out: %s", note)
	}
	all, err := probe.Compare(ctx, a, sled.Host())
	if err != nil {
		return err
	}
	if err := comparedList().Print(e.Streams.Out, e.Output, all); err != nil {
		return err
	}
	return verdict(e, name, all)
}

// verdict says how many commands are equal. Different ones are a failure.
func verdict(e *cli.Env, name string, all []probe.Compared) error {
	count := map[probe.Verdict]int{}
	for _, c := range all {
		count[c.Verdict]++
	}
	text := fmt.Sprintf("%d of %d commands are different, %d parse-equal, %d byte-equal",
		count[probe.Different], len(all), count[probe.ParseEqual], count[probe.ByteEqual])
	if count[probe.Different] == 0 {
		e.Progress.Tell(text)
		return nil
	}
	return &failure.RefusedError{Err: errors.New(text), Advice: "to see the outputs, run: sledctl probe show " + host.Quote(name)}
}

func comparedList() terminal.List[probe.Compared] {
	type column = terminal.Column[probe.Compared]
	return terminal.List[probe.Compared]{Kind: "Comparison", Name: func(c probe.Compared) string { return c.Command }, Columns: []column{
		{Name: "verdict", Value: func(c probe.Compared) string { return string(c.Verdict) }, Style: func(c probe.Compared) terminal.Style { return styleOf(c.Verdict) }},
		{Name: "command", Value: func(c probe.Compared) string { return c.Command }},
		{Name: "where", Value: func(c probe.Compared) string { return c.Where }},
		{Name: "recorded", Value: func(c probe.Compared) string { return c.Recorded }},
		{Name: "simulated", Value: func(c probe.Compared) string { return c.Simulated }},
		{Name: "guesses", Value: func(c probe.Compared) string { return strings.Join(c.Guesses, " ") }},
	}}
}

func styleOf(v probe.Verdict) terminal.Style {
	switch v {
	case probe.Different:
		return terminal.Bad
	case probe.ParseEqual:
		return terminal.Warn
	}
	return terminal.Good
}
