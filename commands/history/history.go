// Package history is sledctl history.
package history

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/propolis/spec"
)

// shownFact is one fact of the past, as it is printed.
type shownFact struct {
	Seq   uint64          `json:"seq"`
	Epoch uint64          `json:"epoch"`
	Time  time.Time       `json:"time"`
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

func factList(now func() time.Time) terminal.List[shownFact] {
	type column = terminal.Column[shownFact]
	return terminal.List[shownFact]{Kind: "Fact", Name: func(f shownFact) string { return f.Key }, Columns: []column{
		{Name: "seq", Value: func(f shownFact) string { return strconv.FormatUint(f.Seq, 10) }, Right: true},
		{Name: "time", Value: func(f shownFact) string { return f.Time.Format(time.RFC3339) }, Human: func(f shownFact) string { return terminal.Ago(now(), f.Time) }},
		{Name: "key", Value: func(f shownFact) string { return f.Key }},
		{Name: "value", Value: func(f shownFact) string { return string(f.Value) }},
		{Name: "epoch", Value: func(f shownFact) string { return strconv.FormatUint(f.Epoch, 10) }, Right: true, Extra: true},
	}}
}

// New is the command history.
func New(env *cli.Env) *cobra.Command {
	var o Options
	cmd := &cobra.Command{
		Use:   "history [KEY]",
		Short: "Print what was decided on this sled, and when",
		Long: `Print what was decided on this sled, and when: the ledger's facts, oldest first, replaced ones too. A value of null is a removal.
KEY, e.g. instance/ or address/, selects the facts whose key begins with it.`,
		Example: `  sledctl history
  sledctl history instance/ -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			o.Prefix = strings.Join(args, "")
			return Run(ctx, env, o)
		}),
	}
	cmd.Flags().IntVar(&o.last, "last", 0, "print only the last N facts (0: all)")
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteKinds)
	return cmd
}

// Options select facts.
type Options struct {
	Prefix string
	last   int
}

// Run prints the facts that are selected.
func Run(ctx context.Context, e *cli.Env, o Options) error {
	list := factList(e.Now)
	if err := list.Check(e.Output); err != nil {
		return err
	}
	if o.last < 0 {
		return &cli.UsageError{Text: fmt.Sprintf("--last %d: want a number above 0", o.last)}
	}
	facts, err := historyOf(ctx, e, o.Prefix)
	if err != nil {
		return err
	}
	if o.last > 0 && len(facts) > o.last {
		facts = facts[len(facts)-o.last:]
	}
	return list.Print(e.Streams.Out, e.Output, facts)
}

func historyOf(ctx context.Context, e *cli.Env, prefix string) ([]shownFact, error) {
	h, places, err := e.Places()
	if err != nil {
		return nil, err
	}
	var facts []shownFact
	for entry, err := range ledger.History(ctx, h.Files(), places) {
		if err != nil {
			return nil, err
		}
		if entry.Members != nil && strings.HasPrefix("members", prefix) {
			value, err := json.Marshal(entry.Members)
			if err != nil {
				return nil, err
			}
			facts = append(facts, shownFact{Seq: entry.Seq, Epoch: entry.Epoch, Time: entry.Time, Key: "members", Value: value})
		}
		for _, f := range entry.Facts {
			if strings.HasPrefix(f.Key, prefix) {
				value := f.Value
				if value == nil {
					value = json.RawMessage("null")
				}
				facts = append(facts, shownFact{Seq: entry.Seq, Epoch: entry.Epoch, Time: entry.Time, Key: f.Key, Value: spec.Mask(value)})
			}
		}
	}
	return facts, nil
}
