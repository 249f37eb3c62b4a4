// Package bootstrap is sledctl bootstrap.
package bootstrap

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/doctor"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/engine/plan"
	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sled/bootstrap"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/instance/secrets"
	"github.com/sledctl/sledctl/sled/reap"
	"github.com/sledctl/sledctl/zone"
)

// New is the command bootstrap.
func New(env *cli.Env) *cobra.Command {
	var m cli.Mutation
	var skip bool
	cmd := &cobra.Command{
		Use:   "bootstrap",
		Short: "Prepare the sled for VMs",
		Long: `Prepare the sled for VMs, in this order: its disks, with the pool and the datasets that each must have; the ledger on the M.2s;
the memory reserved for VMs, if configured; the network below the control VNICs; a reap of what earlier boots left; and, if zones are
cloned and not installed from images, a base zone on each pool that may hold zones. bootstrap keeps what is right; on a prepared sled it
changes nothing.

bootstrap imports pools and unlocks encrypted datasets. It does not format a blank disk without --format-blank; sledctl storage format
formats single disks. A locked, faulted or foreign disk does not stop the others: bootstrap reports it at the end and exits with 3.

Before the first bootstrap of a sled, doctor's checks of the host are run, but for those of what bootstrap does itself. If one fails,
bootstrap changes nothing and exits with 8; --skip-doctor leaves them out.

The ledger gets a copy on each M.2. bootstrap adds an M.2 that is new, or that missed writes, and drops the copy in paths.ledger once
there are copies on disks. If the disks record a ledger and no copy is found, bootstrap creates none: bring a disk back, or start a new
ledger with --new-ledger and record the marked VMs with sledctl instance adopt --all. Until then they are kept.`,
		Example: `  sledctl bootstrap --explain
  sledctl bootstrap`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return run(ctx, env, m, skip) }),
	}
	m.Add(cmd, false)
	cmd.Flags().BoolVar(&env.NewLedger, "new-ledger", false, "start a new ledger: all copies of the old one are lost for good")
	cmd.Flags().BoolVar(&env.FormatBlank, "format-blank", false, "create pools on all disks that are verified blank")
	cmd.Flags().BoolVar(&skip, "skip-doctor", false, "do not run doctor's checks before the first bootstrap")
	env.AddOutput(cmd)
	return cmd
}

// shownPart is a part of bootstrap as it is printed.
type shownPart struct {
	Part    string `json:"part"`
	Result  string `json:"result"` // ready, changed, failed
	Actions int    `json:"actions"`
	Detail  string `json:"detail"`
}

func partList() terminal.List[shownPart] {
	type column = terminal.Column[shownPart]
	style := func(p shownPart) terminal.Style {
		switch p.Result {
		case "failed":
			return terminal.Bad
		case "changed":
			return terminal.Warn
		}
		return terminal.Good
	}
	detail := func(p shownPart) string {
		said := fmt.Sprintf("%s: %d actions", p.Result, p.Actions)
		if p.Actions == 1 {
			said = p.Result + ": 1 action"
		}
		if p.Detail != "" {
			said += ", " + p.Detail
		}
		return said
	}
	tall := &terminal.Tall[shownPart]{Head: func(p shownPart) string { return p.Part }, Detail: detail, Style: style}
	return terminal.List[shownPart]{Kind: "BootstrapPart", Name: func(p shownPart) string { return p.Part }, Tall: tall, Columns: []column{
		{Name: "part", Value: func(p shownPart) string { return p.Part }},
		{Name: "result", Value: func(p shownPart) string { return p.Result }, Style: style},
		{Name: "actions", Value: func(p shownPart) string { return fmt.Sprint(p.Actions) }, Right: true},
		{Name: "detail", Value: func(p shownPart) string { return p.Detail }},
	}}
}

func showPart(p bootstrap.Part) shownPart {
	s := shownPart{Part: p.Name, Result: "ready", Actions: len(p.Report.Outcome.Done)}
	if s.Actions > 0 {
		s.Result = "changed"
	}
	switch {
	case p.Err != nil:
		s.Result, s.Detail = "failed", failure.Text(p.Err)
	case p.Name == "reap":
		s.Detail = fmt.Sprintf("%d objects are sledctl's, %d are foreign", len(p.Findings.Objects), p.Findings.Foreign)
	case p.Did != "":
		s.Result, s.Detail = "changed", p.Did
	case p.Base.Zone != "":
		s.Detail = p.Base.Zone
	case strings.HasPrefix(p.Name, "spares "):
		s.Detail = spares(p.Spares, p.Report.Outcome.Done)
		if _, why, short := strings.Cut(p.Report.Plan.Why, ": "); short {
			s.Detail += "; " + why
		}
	}
	return s
}

// spares says how many zones are wanted ahead on a pool, and how many were created, booted and
// removed.
func spares(wanted int, done []plan.Action) string {
	said := fmt.Sprintf("%d wanted", wanted)
	for _, what := range []struct {
		word string
		did  func(plan.Action) bool
	}{
		{"created", func(a plan.Action) bool { return a.Change == plan.Create }},
		{"booted", func(a plan.Action) bool { return a.Step.Verb() == zone.Boot{}.Verb() }},
		{"removed", func(a plan.Action) bool { return a.Change == plan.Remove }},
	} {
		zones := map[string]bool{}
		for _, a := range done {
			if zone, is := strings.CutPrefix(a.Object, "zone "); is && what.did(a) {
				zones[zone] = true
			}
		}
		if n := len(zones); n > 0 {
			said += fmt.Sprintf(", %s %d", what.word, n)
		}
	}
	return said
}

// addPart adds a part to those shown. One that was done in several goes is
// shown once, as it was in the end.
func addPart(shown []shownPart, p shownPart) []shownPart {
	for i, s := range shown {
		if s.Part != p.Part {
			continue
		}
		p.Actions += s.Actions
		if p.Result == "ready" && p.Actions > 0 {
			p.Result = "changed"
		}
		shown[i] = p
		return shown
	}
	return append(shown, p)
}

// sealSecrets puts secrets apart that an earlier sledctl has left in the ledger.
func sealSecrets(ctx context.Context, e *cli.Env) {
	s, env, err := e.Instances(ctx)
	if err == nil && host.Privileged(env.Host) == nil {
		err = secrets.Apart(ctx, s.SecretDir, env)
	}
	if err != nil {
		e.Progress.Warn(err)
	}
}

// adoptable counts what reap has left for instance adopt.
func adoptable(parts []bootstrap.Part) int {
	n := 0
	for _, p := range parts {
		for _, o := range p.Findings.Objects {
			if o.Verdict == reap.Adoptable {
				n++
			}
		}
	}
	return n
}

func run(ctx context.Context, e *cli.Env, m cli.Mutation, skip bool) error {
	if err := partList().Check(e.Output); err != nil {
		return err
	}
	if !skip {
		if err := doctor.BeforeFirst(ctx, e, m.Dry()); err != nil {
			return err
		}
	}
	s, err := e.BootstrapSettings()
	if err != nil {
		return err
	}
	_, env, err := e.Operation()
	if err != nil {
		return err
	}
	parts, err := s.Run(ctx, env, m.Dry())
	reports := make([]operation.Report, len(parts))
	var shown []shownPart
	for i, p := range parts {
		reports[i] = p.Report
		shown = addPart(shown, showPart(p))
	}
	if err == nil && !m.Dry() {
		sealSecrets(ctx, e)
	}
	left := bootstrap.Leftovers(parts)
	if m.Dry() {
		for _, p := range parts {
			if p.Did != "" {
				e.Progress.Say("%s", p.Did)
			}
		}
		if err != nil {
			return failure.WithReport(err, reports...)
		}
		return e.PrintPlan(m, reports...)
	}
	if len(shown) == 0 {
		return failure.WithReport(err, left...)
	}
	if n := adoptable(parts); n > 0 {
		e.Progress.Warn(fmt.Errorf("%d zones of instances that the ledger does not know are kept: `sledctl instance adopt --all` takes them over", n))
	}
	if perr := partList().Print(e.Streams.Out, e.Output, shown); perr != nil && err == nil {
		err = perr
	}
	return failure.WithReport(err, left...)
}
