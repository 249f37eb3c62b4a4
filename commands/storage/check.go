package storage

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/storage"
)

func driftList() terminal.List[storage.Drift] {
	type column = terminal.Column[storage.Drift]
	style := func(d storage.Drift) terminal.Style {
		if d.RepairedBy == "bootstrap" {
			return terminal.Warn
		}
		return terminal.Bad
	}
	return terminal.List[storage.Drift]{Kind: "Difference", Name: func(d storage.Drift) string { return d.Name }, Columns: []column{
		{Name: "kind", Value: func(d storage.Drift) string { return d.Kind }},
		{Name: "name", Value: func(d storage.Drift) string { return d.Name }},
		{Name: "property", Value: func(d storage.Drift) string { return d.Property }},
		{Name: "is", Value: func(d storage.Drift) string { return d.Is }},
		{Name: "wanted", Value: func(d storage.Drift) string { return d.Wanted }},
		{Name: "repaired_by", Formerly: "mended_by", Value: func(d storage.Drift) string { return d.RepairedBy }, Style: style},
		{Name: "reason", Value: func(d storage.Drift) string { return d.Reason }, Note: true},
		{Name: "next", Value: func(d storage.Drift) string { return strings.Join(d.Said(), "; ") }, Extra: true},
	}}
}

// counted says how many differences there are, and who repairs them.
func counted(drifts []storage.Drift) string {
	if len(drifts) == 0 {
		return "no difference"
	}
	repaired := 0
	for _, d := range drifts {
		if d.RepairedBy == "bootstrap" {
			repaired++
		}
	}
	word := "differences"
	if len(drifts) == 1 {
		word = "difference"
	}
	return fmt.Sprintf("%d %s: bootstrap repairs %d, an operator %d", len(drifts), word, repaired, len(drifts)-repaired)
}

func newCheck(env *cli.Env) *cobra.Command {
	detailed := false
	cmd := &cobra.Command{
		Use: "check", Short: "List storage that differs, and who can repair it",
		Long: `List storage that differs, and who can repair it: for each disk, pool or dataset what it is, what it must be, and whether
bootstrap repairs it or an operator must, and on a terminal the command to type. The command changes nothing.`,
		Example: `  sledctl storage check --detailed-exitcode || sledctl bootstrap`,
		Args:    cobra.NoArgs,
		RunE:    env.Run(func(ctx context.Context, _ []string) error { return runCheck(ctx, env, detailed) }),
	}
	cmd.Flags().BoolVar(&detailed, "detailed-exitcode", false, "exit 10 if there are differences")
	env.AddOutput(cmd)
	return cmd
}

func runCheck(ctx context.Context, e *cli.Env, detailed bool) error {
	if err := driftList().Check(e.Output); err != nil {
		return err
	}
	s, env, err := settingsOf(e)
	if err != nil {
		return err
	}
	drifts, err := s.Check(ctx, env.Host, maybeView(ctx, e))
	if err != nil {
		return err
	}
	for i := range drifts {
		drifts[i].Next, drifts[i].Instead = e.Afar.Each(drifts[i].Next), e.Afar.Typed(drifts[i].Instead)
	}
	if e.Output.Screen(e.Streams.Out) {
		out := e.Streams.Out
		_, err = out.Write([]byte(checked(drifts, out.Width(), out.Style)))
	} else {
		list := driftList()
		list.Summary = counted(drifts)
		err = list.Print(e.Streams.Out, e.Output, drifts)
	}
	if err != nil {
		return err
	}
	if detailed && len(drifts) > 0 {
		return cli.ErrDifferences
	}
	return nil
}
