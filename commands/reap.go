package commands

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/operation"
	"github.com/sledctl/sledctl/reap"
	"github.com/sledctl/sledctl/terminal"
)

func newReap(env *Env) *cobra.Command {
	var m mutation
	cmd := &cobra.Command{
		Use:   "reap",
		Short: "Find what is on the sled that should not be, say why, and remove it",
		Long: `Give every object of sledctl's a verdict and one reason, and remove those that nobody needs: zones of an earlier boot and zones
without an instance, VNICs, datasets, snapshots that clones left. All are tried, all errors are told. What is not sledctl's is not touched; a VM
that runs is never killed.

  in use        an instance has it               orphan        made by us, needed by nobody: removed
  in progress   a running process works on it    stale zone    of an earlier boot, not running: removed
  held          until when                       stale record  recorded, but not on the sled
  adoptable     runs, and the ledger does not    unknown       cannot be told whose it is
                know it`,
		Example: `  sledctl reap --dry-run
  sledctl reap --dry-run -o json
  sledctl reap`,
		Args: cobra.NoArgs,
		RunE: env.run(func(ctx context.Context, _ []string) error { return runReap(ctx, env, m) }),
	}
	m.add(cmd, false)
	env.addOutput(cmd)
	return cmd
}

// shownObject is a judged object, and what became of it.
type shownObject struct {
	reap.Object
	Result string `json:"result"` // removed, left, to remove; empty: it stays
}

func showObjects(f reap.Findings, report operation.Report, dry bool) []shownObject {
	shown := make([]shownObject, len(f.Objects))
	left := make(map[string]bool, len(report.Outcome.Left))
	for _, object := range report.Outcome.Left {
		left[object] = true
	}
	for i, o := range f.Objects {
		shown[i].Object = o
		switch {
		case !o.Verdict.Goes():
		case dry:
			shown[i].Result = "to remove"
		case left[o.Kind+" "+o.Name], report.Outcome.Interrupted != nil:
			shown[i].Result = "left"
		default:
			shown[i].Result = "removed"
		}
	}
	return shown
}

func objectList() terminal.List[shownObject] {
	type column = terminal.Column[shownObject]
	style := func(o shownObject) terminal.Style {
		switch o.Verdict {
		case reap.Orphan, reap.StaleZone:
			return terminal.Bad
		case reap.Adoptable, reap.StaleRec, reap.Unknown:
			return terminal.Warn
		}
		return terminal.Plain
	}
	return terminal.List[shownObject]{Kind: "Object", Name: func(o shownObject) string { return o.Name }, Columns: []column{
		{Name: "kind", Value: func(o shownObject) string { return o.Kind }},
		{Name: "name", Value: func(o shownObject) string { return o.Name }},
		{Name: "verdict", Value: func(o shownObject) string { return string(o.Verdict) }, Style: style},
		{Name: "result", Value: func(o shownObject) string { return o.Result }},
		{Name: "reason", Value: func(o shownObject) string { return o.Reason }},
		{Name: "identity", Value: func(o shownObject) string { return o.Identity }, Extra: true},
	}}
}

func runReap(ctx context.Context, e *Env, m mutation) error {
	if err := objectList().Check(e.output); err != nil {
		return err
	}
	c, err := e.Config()
	if err != nil {
		return err
	}
	env, err := e.operation()
	if err != nil {
		return err
	}
	findings, report, err := reap.Settings{Names: prefixes(c)}.Reap(ctx, env, m.dry())
	if m.explain && err == nil {
		return e.printPlan(m, report)
	}
	if findings.Objects != nil {
		if perr := objectList().Print(e.Streams.Out, e.output, showObjects(findings, report, m.dry())); perr != nil && err == nil {
			err = perr
		}
		e.progress.say("%d objects are of others", findings.Foreign)
	}
	if err == nil && m.dry() && m.detailed && !report.Plan.Empty() {
		return errDifferences
	}
	return withReport(err, report)
}
