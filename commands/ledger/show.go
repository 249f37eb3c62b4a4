package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/ledger"
	"github.com/sledctl/sledctl/propolis/spec"
)

// shownLedger is the ledger as a whole: who keeps it, since when, how much.
type shownLedger struct {
	Ledger   string         `json:"ledger"`
	Seq      uint64         `json:"seq"`
	Hash     string         `json:"hash"`
	Epoch    uint64         `json:"epoch"`
	Members  []shownMember  `json:"members"`
	Lost     []shownMember  `json:"lost"`
	Epochs   []shownEpoch   `json:"epochs"`
	Counts   map[string]int `json:"counts"` // by the first word of the key
	Warnings []string       `json:"warnings"`
}

type shownMember struct {
	Copy    string `json:"copy"`
	Pool    string `json:"pool"`
	File    string `json:"file"`
	Missing string `json:"missing,omitempty"` // why
}

type shownEpoch struct {
	N      uint64    `json:"n"`
	ID     string    `json:"id"`
	Seq    uint64    `json:"seq"`
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`
	Why    string    `json:"why"`
	Copies []string  `json:"copies"`
}

// shownLine is a line of the same for people and for pipes.
type shownLine struct{ what, name, detail string }

func ledgerLines() terminal.List[shownLine] {
	type column = terminal.Column[shownLine]
	return terminal.List[shownLine]{Kind: "Ledger", Name: func(l shownLine) string { return l.name }, Columns: []column{
		{Name: "what", Value: func(l shownLine) string { return l.what }},
		{Name: "name", Value: func(l shownLine) string { return l.name }},
		{Name: "detail", Value: func(l shownLine) string { return l.detail }},
	}}
}

// currentFact is a fact that counts.
type currentFact struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value"`
}

func currentFacts() terminal.List[currentFact] {
	type column = terminal.Column[currentFact]
	return terminal.List[currentFact]{Kind: "Fact", Name: func(f currentFact) string { return f.Key }, Columns: []column{
		{Name: "key", Value: func(f currentFact) string { return f.Key }},
		{Name: "value", Value: func(f currentFact) string { return string(f.Value) }},
	}}
}

func newShow(env *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show [KEY|PREFIX]",
		Short: "Show the ledger's copies, epochs and facts",
		Long: `Show the ledger's copies, epochs and facts. Without an argument, print the copies, the last line that all of them hold, the
epochs (in each, the same copies counted), and the number of facts of each kind. With a KEY, or a PREFIX that ends in a slash, e.g.
instance/, print the facts.`,
		Example: `  sledctl ledger show
  sledctl ledger show address/
  sledctl ledger show instance/ -o json`,
		Args: cobra.MaximumNArgs(1),
		RunE: env.Run(func(ctx context.Context, args []string) error {
			if len(args) > 0 {
				return runFacts(ctx, env, args[0])
			}
			return runShow(ctx, env)
		}),
	}
	env.AddOutput(cmd)
	cli.CompleteArgs(cmd, env.CompleteKinds)
	return cmd
}

func runFacts(ctx context.Context, e *cli.Env, key string) error {
	if err := currentFacts().Check(e.Output); err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	if key != "" && !strings.HasSuffix(key, "/") {
		value, ok := view.Get(key)
		if !ok {
			return &cli.NotFoundError{What: "fact " + key, List: "sledctl ledger show"}
		}
		return currentFacts().PrintOne(e.Streams.Out, e.Output, currentFact{key, spec.Mask(value)})
	}
	var facts []currentFact
	for k, value := range view.All(key) {
		facts = append(facts, currentFact{k, spec.Mask(value)})
	}
	return currentFacts().Print(e.Streams.Out, e.Output, facts)
}

func runShow(ctx context.Context, e *cli.Env) error {
	if err := ledgerLines().Check(e.Output); err != nil {
		return err
	}
	view, err := e.View(ctx)
	if err != nil {
		return err
	}
	s := describe(view)
	if e.Output.Format == terminal.FormatJSON {
		return terminal.List[shownLedger]{Kind: "Ledger"}.PrintOne(e.Streams.Out, e.Output, s)
	}
	short := e.Output.Screen(e.Streams.Out) && e.Streams.Out.Width() < widthOfFiles
	return ledgerLines().Print(e.Streams.Out, e.Output, s.lines(short))
}

func describe(view ledger.View) shownLedger {
	s := shownLedger{
		Ledger: view.Ledger(), Seq: view.Seq(), Hash: view.Head().Hash, Epoch: view.Epoch().N,
		Members: []shownMember{}, Lost: []shownMember{}, Epochs: []shownEpoch{}, Counts: counted(view), Warnings: append([]string{}, view.Warnings()...),
	}
	for _, m := range view.Members() {
		shown := shownMember{Copy: m.Copy, Pool: m.Pool, File: m.File}
		if m.Err != nil {
			shown.Missing = m.Err.Error()
		}
		s.Members = append(s.Members, shown)
	}
	for _, seat := range view.Epoch().Lost {
		s.Lost = append(s.Lost, shownMember{Copy: seat.Copy, Pool: seat.Pool, Missing: "the sled continued without it"})
	}
	for _, epoch := range view.Epochs() {
		shown := shownEpoch{N: epoch.N, ID: epoch.ID, Seq: epoch.Seq, Time: epoch.Time, Who: epoch.Who, Why: epoch.Why}
		for _, seat := range epoch.Copies {
			shown.Copies = append(shown.Copies, seat.Copy)
		}
		s.Epochs = append(s.Epochs, shown)
	}
	return s
}

// counted is how many facts there are of each kind.
func counted(view ledger.View) map[string]int {
	counts := map[string]int{}
	for key := range view.All("") {
		kind, _, _ := strings.Cut(key, "/")
		counts[kind]++
	}
	return counts
}

// widthOfFiles is what a line with the name of a copy's file needs.
const widthOfFiles = 101

// lines are what is printed. Short ones name a copy's pool, not the file there, so that a narrow
// terminal has a table.
func (s shownLedger) lines(short bool) []shownLine {
	lines := []shownLine{{"ledger", s.Ledger, fmt.Sprintf("seq %d, hash %s, epoch %d", s.Seq, s.Hash, s.Epoch)}}
	for _, m := range slices.Concat(s.Members, s.Lost) {
		detail := m.File
		switch {
		case m.Missing != "" && m.Pool != "":
			detail = "pool " + m.Pool + ", missing: " + m.Missing
		case m.Missing != "":
			detail = "missing: " + m.Missing
		case m.Pool != "" && short:
			detail = "pool " + m.Pool
		}
		lines = append(lines, shownLine{"copy", m.Copy, detail})
	}
	for _, e := range s.Epochs {
		lines = append(lines, shownLine{"epoch", fmt.Sprint(e.N), fmt.Sprintf("%s, %d copies, by %s: %s", e.Time.Format(time.RFC3339), len(e.Copies), e.Who, e.Why)})
	}
	var kinds []string
	for kind := range s.Counts {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	for _, kind := range kinds {
		lines = append(lines, shownLine{"facts", kind, fmt.Sprint(s.Counts[kind])})
	}
	return lines
}
