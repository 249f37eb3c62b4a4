package ledger

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/host"
)

type healOptions struct {
	keep   string
	yes    bool
	dryRun bool
}

func newHeal(env *cli.Env) *cobra.Command {
	var o healOptions
	cmd := &cobra.Command{
		Use:   "heal",
		Short: "Add disks to the ledger, or keep one of several copies",
		Long: `Add disks to the ledger, or keep one of several copies. Each M.2 without a copy that counts gets one: an M.2 that is new or missed writes. An existing file is
renamed, never deleted. While a copy that counts is missing, this needs --degraded: from then on, the sled continues without that copy.

If the copies disagree, they cannot be merged. --keep COPY makes one of them the only copy that counts, sets the others aside, and then
adds the disks. COPY is a pool's UUID, a copy's id or a file, as sledctl ledger check prints them. heal first prints the facts that only
the others hold: the sled loses them. --keep asks on a terminal, and needs --yes elsewhere.`,
		Example: `  sledctl ledger heal --dry-run
  sledctl ledger heal
  sledctl ledger heal --keep 4f0f2a34-9ab0-4d3c-9c0f-3b1a7e3d6a51 --dry-run`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runHeal(ctx, env, o) }),
	}
	flags := cmd.Flags()
	flags.StringVar(&o.keep, "keep", "", "keep this copy, and lose the facts that only others hold")
	flags.BoolVar(&o.yes, "yes", false, "do not ask")
	flags.BoolVarP(&o.dryRun, "dry-run", "n", false, "print what would change; change nothing")
	env.CompleteFlag(cmd, "keep", func(ctx context.Context) []string { return completeCopies(ctx, env) })
	env.AddOutput(cmd)
	return cmd
}

// healed is what was done about one place, or to one fact.
type healed struct {
	Action string          `json:"action"` // keep, give up, set aside, join, leave
	File   string          `json:"file"`
	Seq    uint64          `json:"seq,omitempty"`
	Key    string          `json:"key,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
	Detail string          `json:"detail,omitempty"`
}

func healedList() terminal.List[healed] {
	type column = terminal.Column[healed]
	return terminal.List[healed]{Kind: "LedgerChange", Name: func(h healed) string { return cmp.Or(h.Key, h.File) }, Columns: []column{
		{Name: "action", Value: func(h healed) string { return h.Action }},
		{Name: "file", Value: func(h healed) string { return h.File }},
		{Name: "seq", Value: func(h healed) string {
			if h.Seq == 0 {
				return ""
			}
			return fmt.Sprint(h.Seq)
		}, Right: true},
		{Name: "key", Value: func(h healed) string { return h.Key }},
		{Name: "value", Value: func(h healed) string { return string(h.Value) }},
		{Name: "detail", Value: func(h healed) string { return h.Detail }},
	}}
}

func runHeal(ctx context.Context, e *cli.Env, o healOptions) error {
	if err := healedList().Check(e.Output); err != nil {
		return err
	}
	h, err := e.Host()
	if err != nil {
		return err
	}
	if !o.dryRun {
		if err := host.Privileged(h); err != nil {
			return err
		}
	}
	var done []healed
	if o.keep != "" {
		if done, err = keepCopy(ctx, e, o); err != nil {
			return err
		}
	}
	if o.keep == "" || !o.dryRun { // what joins once one copy is kept, nobody can look at before
		moves, serr := e.Relocate(ctx, o.dryRun, "ledger heal")
		done, err = append(done, showMoves(moves)...), serr
		if serr == nil && !o.dryRun {
			err = e.RefreshWitness(ctx)
		}
		for _, a := range moves.Missing {
			e.Progress.Warn(fmt.Errorf("no copy can be made in %v", a))
		}
	}
	if err != nil && len(done) == 0 {
		return err
	}
	if len(done) == 0 {
		e.Progress.Say("nothing to do")
	}
	return errors.Join(err, healedList().Print(e.Streams.Out, e.Output, done))
}

func showMoves(m ledger.Relocation) []healed {
	var out []healed
	for _, at := range m.Join {
		out = append(out, healed{Action: "join", File: at.File()})
	}
	for _, at := range m.Leave {
		out = append(out, healed{Action: "leave", File: at.File()})
	}
	return out
}

// keepCopy makes one copy the only one. What that costs is printed before anybody
// is asked.
func keepCopy(ctx context.Context, e *cli.Env, o healOptions) ([]healed, error) {
	h, places, err := e.Places()
	if err != nil {
		return nil, err
	}
	loss, err := ledger.PreviewKeep(ctx, h.Files(), places, o.keep)
	if err != nil {
		return nil, err
	}
	done := showLoss(loss)
	if loss.Unseen != nil {
		e.Progress.Warn(fmt.Errorf("the sled went on in epoch %d with another copy, which is not here: what it says is lost, and cannot be shown", loss.Unseen.N))
	}
	if o.dryRun {
		return done, nil
	}
	if !o.yes {
		if err := healedList().Print(e.Streams.Err, terminal.Output{}, done); err != nil {
			return nil, err
		}
	}
	question := fmt.Sprintf("Keep %s, and give up what only the other copies say?", loss.Kept)
	if err := e.Streams.Confirm(ctx, "give up copies of the ledger", question, o.yes); err != nil {
		return nil, err
	}
	return done, ledger.Keep(ctx, h.Files(), places, loss, cli.Who(e.Environ), "ledger heal --keep")
}

func showLoss(loss ledger.KeepPreview) []healed {
	out := []healed{{Action: "keep", File: loss.Kept, Seq: loss.Head.Seq}}
	for _, other := range loss.Others {
		for _, entry := range other.Facts {
			if entry.Members != nil {
				out = append(out, healed{Action: "give up", File: other.File, Seq: entry.Seq, Key: "members", Detail: entry.Members.Who + ": " + entry.Members.Why})
			}
			for _, f := range entry.Facts {
				out = append(out, healed{Action: "give up", File: other.File, Seq: entry.Seq, Key: f.Key, Value: f.Value})
			}
		}
		out = append(out, healed{Action: "set aside", File: other.File, Seq: other.Head.Seq})
	}
	return out
}
