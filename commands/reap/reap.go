// Package reap is sledctl reap.
package reap

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
	"github.com/sledctl/sledctl/sled/failure"
	"github.com/sledctl/sledctl/sled/reap"
)

// reapFlags say what a reap may remove.
type reapFlags struct {
	cli.Mutation
	all              bool
	yes              bool
	plan             string
	include, exclude []string
	changes          bool // print only the removals, and what needs a look
	allObjects       bool // on a terminal, too
}

// New is the command reap.
func New(env *cli.Env) *cobra.Command {
	var f reapFlags
	cmd := &cobra.Command{
		Use:   "reap",
		Short: "Remove what sledctl left behind, and say why",
		Long: `Remove what sledctl left behind, and say why. Each sledctl object gets a verdict and one reason; reap removes those that no
instance needs: zones left by a previous boot or without an instance, VNICs, etherstubs and addresses of an earlier configuration,
datasets, snapshots of clones, plain directories, key files, secrets of VMs, and zone configurations of killed operations. reap tries all
of them and reports every error. It does not touch foreign objects, stops no running VM, and destroys no VM handle below /dev/vmm.

  in use        an instance has it
  in progress   a running process works on it
  held          reserved until the time shown
  spare         cloned ahead for a new VM (instance.spares)
  adoptable     marked as an instance's, and not in the ledger
  orphan        created by sledctl, needed by no instance: removed
  stale zone    left by a previous boot, not running: removed
  stale record  recorded, but not on the sled
  unknown       its owner cannot be determined

With -n -o json the output is a plan: --plan removes exactly those of its objects that are "to remove", if they are unchanged and reap
would still remove them, and reports what has changed. To keep an object, delete it from the file. The plan names its ledger: --plan
refuses (exit 9) if the sled's ledger is older, or another one. An orphan is *unconfirmed* if the ledger may lack what needs it; reap
removes no unconfirmed orphan.

reap removes an adoptable object that does not run if it is named: --include zone/NAME, or dataset/NAME if its zone is gone.

--all removes everything that is certainly sledctl's, running VMs too; it keeps unknown objects, protected instances, objects in progress
and the sled's network. The records of the instances stay too: instance ensure creates the VMs again.`,
		Example: `  sledctl reap --dry-run
  sledctl reap --dry-run -o json > plan.json; sledctl reap --plan plan.json
  sledctl reap --include vnic --exclude 'vnic/vnic_propolis_guest*'
  sledctl reap --all --yes`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return run(ctx, env, f) }),
	}
	f.Add(cmd, false)
	env.AddOutput(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all", false, "remove all sledctl objects, running or not; asks first")
	flags.BoolVar(&f.yes, "yes", false, "with --all: do not ask")
	flags.BoolVar(&f.changes, "changes", false, "print only removals, and the objects that need a look")
	flags.BoolVar(&f.allObjects, "all-objects", false, "print all objects on a terminal, too, one by one")
	flags.StringVar(&f.plan, "plan", "", "remove only what the plan in `FILE` lists; - is stdin")
	flags.StringArrayVar(&f.include, "include", nil, "only these: KIND or KIND/NAME, * matches anything; repeatable")
	flags.StringArrayVar(&f.exclude, "exclude", nil, "not these: KIND or KIND/NAME, * matches anything; repeatable")
	env.Complete(cmd, "include", reap.Kinds)
	env.Complete(cmd, "exclude", reap.Kinds)
	return cmd
}

func run(ctx context.Context, e *cli.Env, f reapFlags) error {
	if err := objectList().Check(e.Output); err != nil {
		return err
	}
	switch {
	case f.changes && f.allObjects:
		return &cli.UsageError{Text: "--changes and --all-objects cannot both be given"}
	case f.changes && e.Output.Format == terminal.FormatJSON:
		return &cli.UsageError{Text: "--changes cannot be used with -o json: its output is the plan that --plan reads, which has all objects"}
	}
	choice, err := readReapChoice(e.Streams, f)
	if err != nil {
		return err
	}
	c, env, err := e.Operation()
	if err != nil {
		return err
	}
	s := cli.ReapSettings(c)
	dir := cli.SecretDir(c, env.Host)
	s.SecretDir = &dir
	if f.all && !f.Dry() && !f.yes {
		if choice, err = agreeToAll(ctx, e.Streams, s, env, choice); err != nil {
			return err
		}
	}
	if f.DryRun && !f.Explain {
		findings, err := s.Verdicts(ctx, env, choice)
		if err = tellReap(e, f, findings, operation.Report{}, err); err == nil && f.Detailed && findings.Going() > 0 {
			return cli.ErrDifferences
		}
		return err
	}
	findings, report, err := s.ReapChosen(ctx, env, choice, f.Dry())
	if f.Explain && err == nil {
		return e.PrintPlan(f.Mutation, report)
	}
	return failure.WithReport(tellReap(e, f, findings, report, err), report)
}

// tellReap prints the objects, also of a reap that failed, and what else there
// is to say. It gives the reap's error, or its own.
func tellReap(e *cli.Env, f reapFlags, findings reap.Findings, report operation.Report, err error) error {
	if err != nil && findings.Objects == nil {
		return err
	}
	objects := showObjects(findings, f.plan != "", report, f.Dry())
	asScreen := e.Output.Screen(e.Streams.Out) && !f.changes && !f.allObjects
	perr := printObjects(e, f, findings, objects, asScreen)
	for _, changed := range findings.Changed {
		e.Progress.Warn(fmt.Errorf("%s %s of the plan %s", changed.Kind, changed.Name, changed.Now))
	}
	if !asScreen {
		e.Progress.Say("%d objects are of others", findings.Foreign)
	}
	return cmp.Or(err, perr)
}

func printObjects(e *cli.Env, f reapFlags, findings reap.Findings, objects []shownObject, asScreen bool) error {
	if asScreen {
		return screen(e.Streams.Out, objects, findings.Foreign, f.Dry())
	}
	if f.changes {
		objects = changes(objects)
	}
	list := objectList()
	list.Ledger = findings.Basis
	return list.Print(e.Streams.Out, e.Output, objects)
}

// agreeToAll asks whether everything is to go, and how much that is. What is
// removed then is what was there when it was asked.
func agreeToAll(ctx context.Context, streams *terminal.Streams, s reap.Settings, env operation.Env, choice reap.Choice) (reap.Choice, error) {
	const what = "reap --all"
	if !streams.In.Terminal || !streams.Err.Terminal {
		return choice, streams.Confirm(ctx, what, "", false)
	}
	findings, err := s.Verdicts(ctx, env, choice)
	if err != nil {
		return choice, err
	}
	agreed, running := []reap.Object{}, 0
	for _, o := range findings.Objects {
		if !o.Removed {
			continue
		}
		agreed = append(agreed, o)
		if o.Kind == reap.KindZone && findings.Runs(o) {
			running++
		}
	}
	choice.Plan = agreed
	question := fmt.Sprintf("Remove %d sledctl objects? Zones among them that run: %d.", len(agreed), running)
	return choice, streams.Confirm(ctx, what, question, false)
}

// shownObject is a judged object, and what reap did with it.
type shownObject struct {
	reap.Object
	Result string `json:"result"` // one of the results; empty: it stays
}

// The results.
const (
	resultToRemove = "to remove"
	resultRemoved  = "removed"
	resultLeft     = "left"     // it could not be removed
	resultLeftOut  = "left out" // it should not be there, and the operator's choice leaves it
)

// showObjects shows all objects, or those of a saved plan.
func showObjects(f reap.Findings, planned bool, report operation.Report, dry bool) []shownObject {
	shown := make([]shownObject, 0, len(f.Objects))
	left := make(map[string]bool, len(report.Outcome.Leftovers))
	for _, object := range report.Outcome.Leftovers {
		left[object] = true
	}
	for _, o := range f.Objects {
		s := shownObject{Object: o}
		switch {
		case planned && !f.Planned(o):
			continue
		case !o.Removed && o.Verdict.Removed():
			s.Result = resultLeftOut
		case !o.Removed:
		case dry:
			s.Result = resultToRemove
		case left[o.Kind+" "+o.Name], report.Outcome.Interrupted != nil:
			s.Result = resultLeft
		default:
			s.Result = resultRemoved
		}
		shown = append(shown, s)
	}
	return shown
}

func objectList() terminal.List[shownObject] {
	type column = terminal.Column[shownObject]
	style := func(o shownObject) terminal.Style {
		switch o.Verdict {
		case reap.Orphan, reap.StaleZone, reap.Unconfirmed:
			return terminal.Bad
		case reap.Adoptable, reap.StaleRec, reap.Unknown:
			return terminal.Warn
		}
		return terminal.Plain
	}
	return terminal.List[shownObject]{
		Kind: "Object", Name: func(o shownObject) string { return o.Name },
		Columns: []column{
			{Name: "kind", Value: func(o shownObject) string { return o.Kind }},
			{Name: "name", Value: func(o shownObject) string { return o.Name }},
			{Name: "verdict", Value: func(o shownObject) string { return string(o.Verdict) }, Style: style},
			{Name: "result", Value: func(o shownObject) string { return o.Result }},
			{Name: "reason", Value: func(o shownObject) string { return o.Reason }, Note: true},
			{Name: "identity", Value: func(o shownObject) string { return o.Identity }, Extra: true},
		},
		Tall: &terminal.Tall[shownObject]{
			Head: func(o shownObject) string { return o.Kind + " " + o.Name },
			Detail: func(o shownObject) string {
				if o.Result == "" {
					return string(o.Verdict) + ": " + o.Reason
				}
				return string(o.Verdict) + ", " + o.Result + ": " + o.Reason
			},
			Style: style,
		},
	}
}
