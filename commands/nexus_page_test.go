package commands_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sledctl/sledctl/agent"
	"github.com/sledctl/sledctl/peer/dropshot/dropshottest"
)

// docs/nexus.md decides of each operation of the sled agent's API once, and what it says is
// served, and nothing else, is served.
func TestThePageOfTheControlPlaneIsWhole(t *testing.T) {
	doc := dropshottest.Published(t, "sled-agent-48.0.0.json")
	var theirs, decided, served, ours []string
	for _, path := range doc.Paths.Map() {
		for _, o := range path.Operations() {
			theirs = append(theirs, o.OperationID)
		}
	}
	page, err := os.ReadFile("../docs/nexus.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| | operations |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(row, "|")
		if len(cells) != 4 {
			t.Fatalf("not a row: %q", row)
		}
		for _, id := range regexp.MustCompile("`([a-z0-9_]+)`").FindAllStringSubmatch(cells[2], -1) {
			decided = append(decided, id[1])
			if strings.HasPrefix(cells[1], " served") {
				served = append(served, id[1])
			}
		}
	}
	text, err := agent.OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var own struct {
		Paths map[string]map[string]struct {
			ID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(text, &own); err != nil {
		t.Fatal(err)
	}
	for _, methods := range own.Paths {
		for _, o := range methods {
			if slices.Contains(theirs, o.ID) {
				ours = append(ours, o.ID)
			}
		}
	}
	for _, all := range [][]string{theirs, decided, served, ours} {
		slices.Sort(all)
	}
	if diff := cmp.Diff(theirs, decided); diff != "" || len(theirs) != 82 {
		t.Errorf("%d operations: %s", len(theirs), diff)
	}
	if diff := cmp.Diff(ours, served); diff != "" {
		t.Error(diff)
	}
}
