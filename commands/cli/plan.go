package cli

import (
	"encoding/json"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/engine/operation"
)

// shownAction is an action of a plan as -o json prints it.
type shownAction struct {
	Change   string   `json:"change"` // create, modify, remove, wait
	Verb     string   `json:"verb"`
	Object   string   `json:"object"`
	Why      string   `json:"why"`
	Commands []string `json:"commands"`
}

func printPlanJSON(streams *terminal.Streams, reports []operation.Report) error {
	items, why := []shownAction{}, []string{}
	for _, r := range reports {
		rows, err := r.Plan.Rows()
		if err != nil {
			return err
		}
		if r.Plan.Why != "" {
			why = append(why, r.Plan.Why)
		}
		for _, row := range rows {
			a := shownAction{Change: changeWord(string(row.Change)), Verb: row.Verb, Object: row.Object, Why: row.Why, Commands: []string{}}
			for _, l := range row.Lines {
				a.Commands = append(a.Commands, l.Text)
			}
			items = append(items, a)
		}
	}
	encoder := json.NewEncoder(streams.Out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(struct {
		APIVersion string        `json:"apiVersion"`
		Kind       string        `json:"kind"`
		Why        []string      `json:"why,omitempty"` // of plans that rebuild something, and the start order
		Items      []shownAction `json:"items"`
	}{terminal.APIVersion, "ActionList", why, items})
}

func changeWord(sign string) string {
	return map[string]string{"+": "create", "~": "modify", "-": "remove", " ": "wait"}[sign]
}
