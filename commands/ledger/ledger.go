// Package ledger is sledctl ledger.
package ledger

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/propolis/spec"
)

// New is the command ledger.
func New(env *cli.Env) *cobra.Command {
	cmd := cli.Group("ledger", "Show, check and repair the ledger", `
The ledger records what was decided on this sled, with one copy on each M.2. These commands show, check and repair it; docs/operations.md
says when to use them.`)
	cmd.AddCommand(newShow(env), newCheck(env), newHeal(env), newExport(env), newImport(env))
	return cmd
}

// completeCopies offers the pools that copies are on, and the directories of
// the others.
func completeCopies(ctx context.Context, e *cli.Env) []string {
	h, places, err := e.Places()
	if err != nil {
		return nil
	}
	x, err := ledger.Check(ctx, h.Files(), places)
	if err != nil {
		return nil
	}
	var names []string
	for _, p := range x.Places {
		switch {
		case p.Copy == "" || p.Verdict == ledger.IsMissing:
		case p.Pool != "":
			names = append(names, p.Pool)
		default:
			names = append(names, p.Directory)
		}
	}
	return names
}

// shownExport is all that the ledger holds, as JSON.
type shownExport struct {
	Ledger string                     `json:"ledger"`
	Seq    uint64                     `json:"seq"`
	Hash   string                     `json:"hash"`
	Epoch  ledger.Epoch               `json:"epoch"`
	Facts  map[string]json.RawMessage `json:"facts"`
}

func newExport(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "export",
		Short: "Print all facts as one JSON object",
		Long: `Print all facts as one JSON object, for another tool or for safekeeping. The object is not a copy of the ledger; but if all
copies are lost, sledctl ledger import restores its instances. Keep it away from the sled's disks.`,
		Example: `  sledctl ledger export > facts.json
  sledctl ledger export | jq '.facts | keys'`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error {
			env.Output.Format = terminal.FormatJSON
			view, err := env.View(ctx)
			if err != nil {
				return err
			}
			x := shownExport{Ledger: view.Ledger(), Seq: view.Seq(), Hash: view.Head().Hash, Epoch: view.Epoch(), Facts: map[string]json.RawMessage{}}
			for key, value := range view.All("") {
				x.Facts[key] = spec.Mask(value)
			}
			return terminal.List[shownExport]{Kind: "LedgerExport"}.PrintOne(env.Streams.Out, env.Output, x)
		}),
	}
}
