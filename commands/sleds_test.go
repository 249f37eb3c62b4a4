package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
)

// A command that changes a sled which was not named says which one it is. What cannot show what it
// would do is known as a reader, or as one that changes something.
func TestWhatChangesASledIsKnown(t *testing.T) {
	readers := strings.Fields(`config-check config-show doctor events history status trace
		base-list nics-list storage-check storage-list vnic-list zone-list zone-bundle-get zone-bundle-list
		instance-get instance-history instance-list instance-logs instance-wait instance-watch
		ledger-check ledger-export ledger-show
		probe-compare probe-record probe-show
		propolis-get propolis-monitor propolis-spec-convert propolis-spec-diff propolis-spec-show propolis-spec-validate`)
	here := []string{"sim", "sled", "version", "completion", "exit"} // about this machine
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
