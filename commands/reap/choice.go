package reap

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/reap"
)

// readReapChoice reads the flags, and the plan's file if there is one.
func readReapChoice(streams *terminal.Streams, f reapFlags) (reap.Choice, error) {
	choice := reap.Choice{All: f.all}
	for _, c := range []struct {
		flag  string
		words []string
		into  *[]reap.Pattern
	}{{"--include", f.include, &choice.Include}, {"--exclude", f.exclude, &choice.Exclude}} {
		for _, word := range c.words {
			p, err := reap.ParsePattern(word)
			if err != nil {
				return reap.Choice{}, &cli.UsageError{Text: fmt.Sprintf("%s: %v", c.flag, err)}
			}
			*c.into = append(*c.into, p)
		}
	}
	if f.plan == "" {
		return choice, nil
	}
	data, err := cli.ReadDocument(streams, "--plan", f.plan)
	if err != nil {
		return reap.Choice{}, err
	}
	choice.Plan, choice.Basis, err = parseReapPlan(data)
	if err != nil {
		return reap.Choice{}, &cli.UsageError{Text: fmt.Sprintf("--plan %s: %v", f.plan, err)}
	}
	return choice, nil
}

// parseReapPlan reads what reap -n -o json has printed, and gives the objects
// that are to be removed, and the ledger that they were judged by.
func parseReapPlan(data []byte) ([]reap.Object, *reap.Basis, error) {
	var file struct {
		APIVersion string        `json:"apiVersion"`
		Kind       string        `json:"kind"`
		Ledger     *reap.Basis   `json:"ledger"` // none: of a program that did not tell
		Items      []shownObject `json:"items"`
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, nil, fmt.Errorf("want what reap --dry-run -o json prints: %w", err)
	}
	if file.APIVersion != terminal.APIVersion || file.Kind != "ObjectList" {
		return nil, nil, fmt.Errorf("want apiVersion %q and kind %q, as reap --dry-run -o json prints, not %q and %q", terminal.APIVersion, "ObjectList", file.APIVersion, file.Kind)
	}
	planned := []reap.Object{}
	seen := map[string]bool{}
	for i, o := range file.Items {
		switch {
		case o.Result != resultToRemove:
			continue
		case o.Kind == "" || o.Name == "":
			return nil, nil, fmt.Errorf("item %d has no kind or no name", i+1)
		case seen[o.Kind+" "+o.Name]:
			return nil, nil, fmt.Errorf("%s %s stands there twice", o.Kind, o.Name)
		}
		seen[o.Kind+" "+o.Name] = true
		planned = append(planned, o.Object)
	}
	return planned, file.Ledger, nil
}
