package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/sleds"
	"github.com/sledctl/sledctl/test/sledtest"
)

// A command that changes a sled which was not named says which one it is. What cannot show what it
// would do is known as a reader, or as one that changes something.
func TestWhatChangesASledIsKnown(t *testing.T) {
	readers := strings.Fields(`config-check config-show doctor events history status trace
		base-list image-export image-get image-list instance-snapshot-list nics-list storage-check storage-list storage-local-disk-list vnic-list volume-get volume-list zone-list zone-bundle-get zone-bundle-list
		instance-get instance-history instance-list instance-logs instance-wait instance-watch
		ledger-check ledger-export ledger-show
		probe-compare probe-record probe-show
		propolis-get propolis-monitor propolis-spec-convert propolis-spec-diff propolis-spec-show propolis-spec-validate`)
	here := []string{"sim", "sled", "version", "completion", "exit", "privileges"} // about this machine
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			visit(c)
		}
		name := strings.ReplaceAll(strings.TrimPrefix(cmd.CommandPath(), "sledctl "), " ", "-")
		top, _, _ := strings.Cut(name, "-")
		group := cmd.HasSubCommands() && cmd.Name() != "agent"
		if group || slices.Contains(here, top) || cmd.Flags().Lookup("dry-run") != nil {
			return
		}
		if cli.Changes(cmd) == slices.Contains(readers, name) {
			t.Errorf("%s: it changes a sled %v, and is a reader %v", cmd.CommandPath(), cli.Changes(cmd), slices.Contains(readers, name))
		}
	}
	visit(commands.Root())
}

// The commands that an agent answers are known by name, for the screens that name commands, and
// what no agent can be asked for is refused by each that has the flag.
func TestWhatAnAgentAnswersIsKnown(t *testing.T) {
	var known []string
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			visit(c)
		}
		if f := cmd.Flags().Lookup("agent"); f == nil || f.Value.Type() != "string" || !cmd.HasParent() || cmd.CommandPath() == "sledctl sled add" {
			return
		}
		known = append(known, strings.TrimPrefix(cmd.CommandPath(), "sledctl "))
		args := strings.Fields(cmd.CommandPath())[1:]
		for _, flag := range sleds.NotByAgent() {
			f := cmd.Flags().Lookup(strings.TrimLeft(flag, "-"))
			if f == nil {
				continue
			}
			line := strings.Join(args, " ") + " --agent unix:/nowhere " + flag
			if line == "instance start --agent unix:/nowhere --all" { // no screen names it
				continue
			}
			if value := map[string]string{"duration": "1s", "string": "x"}[f.Value.Type()]; value != "" {
				if f.Name == "migration-id" {
					value = "11111111-2222-4333-8444-555555555555"
				}
				line += " " + value
			}
			if flag != "--all" && cmd.Use != cmd.Name() {
				line += " web1"
			}
			if a := sledtest.New(t, sledtest.Small(), "").Try(line); a.Exit != 2 || !strings.Contains(a.Errs, "an agent cannot be asked") {
				t.Errorf("%s: %+v", line, a)
			}
		}
	}
	visit(commands.Root())
	if slices.Sort(known); !slices.Equal(known, sleds.ByAgent()) {
		t.Errorf("an agent answers %q, and is known to answer %q", known, sleds.ByAgent())
	}
}
