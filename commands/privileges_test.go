package commands_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands"
	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/host/privilege"
	"github.com/sledctl/sledctl/sled/rights"
	"github.com/sledctl/sledctl/test/sledtest"
)

// No command that works on a sled is forgotten in the table of rights, none is there that
// does not exist, and what may change a sled needs more than to read files.
func TestEveryCommandHasItsRights(t *testing.T) {
	var named []string
	for _, c := range rights.Commands() {
		named = append(named, c.Name)
	}
	elsewhere := []string{"sim", "sled", "version", "completion", "exit-codes", "privileges"} // not about the sled
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		for _, c := range cmd.Commands() {
			visit(c)
		}
		name := strings.TrimPrefix(cmd.CommandPath(), "sledctl ")
		top, _, _ := strings.Cut(name, " ")
		if cmd.RunE == nil || cmd.HasSubCommands() && cmd.Name() != "agent" || slices.Contains(elsewhere, top) && name != "sled keeper" {
			return
		}
		c := sledtest.Rights(name)
		named = slices.DeleteFunc(named, func(n string) bool { return n == c.Name })
		changes := cli.Changes(cmd) && !slices.Contains([]string{"doctor", "top", "instance console", "probe record"}, name)
		if c.Name != name || changes != (c.File == privilege.WriteFiles) {
			t.Errorf("sledctl %s: its rights are %+v, and it changes something %v", name, c, changes)
		}
	}
	visit(commands.Root())
	if !slices.Equal(named, []string{"probe record --active"}) {
		t.Errorf("no commands: %v", named)
	}
}
