package ledger

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
)

// shownCopy is what is in one place where a copy may be.
type shownCopy struct {
	Copy      string         `json:"copy"`
	Pool      string         `json:"pool"`
	File      string         `json:"file"`
	Verdict   ledger.Verdict `json:"verdict"`
	Detail    string         `json:"detail"`
	Ledger    string         `json:"ledger"`
	Epoch     uint64         `json:"epoch"`
	Seq       uint64         `json:"seq"`
	Hash      string         `json:"hash"`
	Lines     int            `json:"lines"`
	Facts     int            `json:"facts"`
	Histories int            `json:"histories"`
}

func copyList() terminal.List[shownCopy] {
	type column = terminal.Column[shownCopy]
	number := func(n int) string { return strconv.Itoa(n) }
	style := func(c shownCopy) terminal.Style {
		switch {
		case !c.Verdict.Sound():
			return terminal.Bad
		case c.Verdict == ledger.IsMember:
			return terminal.Good
		}
		return terminal.Plain
	}
	return terminal.List[shownCopy]{Kind: "LedgerCopy", Name: func(c shownCopy) string { return c.Copy }, Columns: []column{
		{Name: "copy", Value: func(c shownCopy) string { return c.Copy }},
		{Name: "verdict", Value: func(c shownCopy) string { return string(c.Verdict) }, Style: style},
		{Name: "epoch", Value: func(c shownCopy) string { return strconv.FormatUint(c.Epoch, 10) }, Right: true},
		{Name: "seq", Value: func(c shownCopy) string { return strconv.FormatUint(c.Seq, 10) }, Right: true},
		{Name: "facts", Value: func(c shownCopy) string { return number(c.Facts) }, Right: true},
		{Name: "file", Value: func(c shownCopy) string { return c.File }},
		{Name: "detail", Value: func(c shownCopy) string { return c.Detail }},
		{Name: "pool", Value: func(c shownCopy) string { return c.Pool }, Extra: true},
		{Name: "hash", Value: func(c shownCopy) string { return c.Hash }, Extra: true},
		{Name: "lines", Value: func(c shownCopy) string { return number(c.Lines) }, Right: true, Extra: true},
		{Name: "histories", Value: func(c shownCopy) string { return number(c.Histories) }, Right: true, Extra: true},
		{Name: "ledger", Value: func(c shownCopy) string { return c.Ledger }, Extra: true},
	}}
}

func newCheck(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Verify every copy of the ledger",
		Long: `Verify every copy of the ledger: read every line of each copy and of its history, compare the copies with each other and with the
epoch tags of the U.2 pools, and give each place a verdict. The command changes nothing. Exit 9 if something is wrong.

  member       counts, and is complete
  behind       counts; the next writer appends the line that it lacks
  torn         counts; an incomplete line follows its end
  stale        an older copy, which does not count and does no harm
  none         no file, and none expected
  missing      counts, and has no file
  broken       has a file that fails its checks
  damaged      has text after its end that is no line
  rewound      lacks lines that were in it
  duplicate    the same copy is in another place too
  forked       disagrees with other copies: see ledger heal
  unconfirmed  only missing copies could confirm it
  another sled's

With -o json, the key "ledger" also has the epoch tag of each U.2 pool (current, older, newer, another sled's, given up, none), and the
last line that this boot acknowledged or showed.`,
		Example: `  sledctl ledger check
  sledctl ledger check -o json`,
		Args: cobra.NoArgs,
		RunE: env.Run(func(ctx context.Context, _ []string) error { return runCheck(ctx, env) }),
	}
	env.AddOutput(cmd)
	return cmd
}

func runCheck(ctx context.Context, e *cli.Env) error {
	if err := copyList().Check(e.Output); err != nil {
		return err
	}
	h, places, err := e.Places()
	if err != nil {
		return err
	}
	x, err := ledger.Check(ctx, h.Files(), places)
	if err != nil {
		return err
	}
	for _, w := range x.Warnings {
		e.Progress.Warn(errors.New(w))
	}
	list := copyList()
	list.Ledger = showKnown(x)
	for _, m := range x.Tags {
		e.Progress.Say("pool %s: its epoch tag is %s%s", m.Pool, m.Says, inBrackets(m.Tag))
	}
	if x.Seen != nil {
		e.Progress.Say("this boot has seen seq %d, epoch %d", x.Seen.Seq, x.Seen.Epoch)
	}
	if len(x.Places) > 0 {
		if err := list.Print(e.Streams.Out, e.Output, showCopies(x.Places)); err != nil {
			return err
		}
	}
	return x.Err()
}

func inBrackets(m *ledger.EpochTag) string {
	if m == nil {
		return ""
	}
	return " (" + m.String() + ")"
}

// shownKnown is what is known next to the copies.
type shownKnown struct {
	Tags []shownTag `json:"epoch_tags"`
	Seen *shownSeen `json:"seen"` // null: this boot has seen nothing yet
}

type shownTag struct {
	Pool string           `json:"pool"`
	Says ledger.Says      `json:"says"`
	Tag  *ledger.EpochTag `json:"epoch_tag,omitempty"`
}

type shownSeen struct {
	Ledger string `json:"ledger"`
	Epoch  uint64 `json:"epoch"`
	Seq    uint64 `json:"seq"`
	Hash   string `json:"hash"`
	Agreed bool   `json:"agreed"` // with the U.2s, with the disks that are there
}

func showKnown(x ledger.Examination) shownKnown {
	known := shownKnown{Tags: []shownTag{}}
	for _, m := range x.Tags {
		known.Tags = append(known.Tags, shownTag{m.Pool, m.Says, m.Tag})
	}
	if x.Seen != nil {
		known.Seen = &shownSeen{x.Seen.Ledger, x.Seen.Epoch, x.Seen.Seq, x.Seen.Hash, x.Seen.Agreed}
	}
	return known
}

func showCopies(places []ledger.Examined) []shownCopy {
	shown := make([]shownCopy, len(places))
	for i, p := range places {
		shown[i] = shownCopy{
			Copy: p.Copy, Pool: p.Pool, File: p.File(), Verdict: p.Verdict, Detail: p.Detail, Ledger: p.Ledger,
			Epoch: p.Epoch, Seq: p.Head.Seq, Hash: p.Head.Hash, Lines: p.Lines, Facts: p.Facts, Histories: p.Histories,
		}
	}
	return shown
}
