package commands

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/rights"
)

func newPrivileges(*cli.Env) *cobra.Command {
	return &cobra.Command{Use: "privileges", Short: "Print what each command needs to run", Long: privilegesText()}
}

// privilegesText lists the commands by what they need.
func privilegesText() string {
	var b strings.Builder
	b.WriteString(`Print what each command needs to run: privileges (privileges(7)), and user 0 where it writes files of root's.
All privileges serve for user 0, too. A command with --dry-run needs what one that reads needs.
sledctl doctor says which commands the privileges of the process that it runs in are enough for.`)
	for _, g := range rights.Groups() {
		fmt.Fprintf(&b, "\n\n%s:\n", g.Need)
		for _, line := range terminal.Wrapped(strings.Join(names(g), ", "), 74) {
			b.WriteString("\n  " + line)
		}
	}
	b.WriteString(`

The commands with an asterisk ask the Propolis of VMs. Where network.underlay is not set, the control addresses come from
DHCP, and sledctl reads them in the zones: those commands then need all privileges. docs/privileges.md says which program
of the host needs what, and shows a rights profile.`)
	return b.String()
}

// names are the commands of a group by name, with an asterisk at those that ask.
func names(g rights.Group) (all []string) {
	all = append(all, g.Others...)
	for _, name := range g.Asking {
		all = append(all, name+"*")
	}
	return all
}
