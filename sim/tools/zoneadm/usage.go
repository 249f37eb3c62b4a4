package zoneadm

import (
	"fmt"
	"io"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// This file is what zoneadm(8) says about itself. The forms are those of
// usr/src/cmd/zoneadm/zoneadm.c; the paragraph under each is shorter here.

// zoneadmForms are the subcommands that the usage shows, in its order.
func zoneadmForms() []string {
	return []string{"help", "boot", "halt", "ready", "shutdown", "reboot", "list", "verify", "install", "uninstall", "clone",
		"move", "detach", "attach", "mark"}
}

func zoneadmForm(command string) (form, about string) {
	switch command {
	case "boot":
		return "boot [-- boot_arguments]", "Activates (boots) specified zone."
	case "halt":
		return "halt", "Halts specified zone, bypassing shutdown scripts."
	case "ready":
		return "ready", "Prepares a zone for running applications."
	case "shutdown":
		return "shutdown [-r [-- boot_arguments]]", "Gracefully shutdown the zone or reboot if the '-r' option is specified."
	case "reboot":
		return "reboot [-- boot_arguments]", "Restarts the zone (equivalent to a halt / boot sequence)."
	case "list":
		return "list [-cinpv]", "Lists the current zones, or a specific zone if indicated."
	case "verify":
		return "verify", "Check to make sure the configuration can safely be instantiated."
	case "install":
		return "install [-x nodataset] [brand-specific args]", "Install the configuration on to the system."
	case "uninstall":
		return "uninstall [-F] [brand-specific args]", "Uninstall the configuration from the system."
	case "clone":
		return "clone [-m method] [-s <ZFS snapshot>] [brand-specific args] zonename", "Clone the installation of another zone."
	case "move":
		return "move zonepath", "Move the zone to a new zonepath."
	case "detach":
		return "detach [-n] [brand-specific args]", "Detach the zone from the system."
	case "attach":
		return "attach [-F] [-n <path>] [brand-specific args]", "Attach the zone to the system."
	case "mark":
		return "mark incomplete", "Set the state of the zone."
	}
	return "help", "Print usage message."
}

func (z *zoneadm) usage(w io.Writer, explicit bool) {
	io.WriteString(w, "usage:\tzoneadm help\n\tzoneadm [-z <zone>] [-u <uuid-match>] list\n"+
		"\tzoneadm {-z <zone>|-u <uuid-match>} <subcommand>\n\nSubcommands:\n\n")
	for _, command := range zoneadmForms() {
		form, about := zoneadmForm(command)
		fmt.Fprintln(w, form)
		if explicit {
			fmt.Fprintf(w, "\t%s\n\n", about)
		}
	}
	if !explicit {
		fmt.Fprintln(w)
	}
}

func (z *zoneadm) printSubUsage(command string) {
	form, about := zoneadmForm(command)
	fmt.Fprintf(&z.err, "usage:\t%s\n\t%s\n", form, about)
}

func (z *zoneadm) help(args []string) cli.Reply {
	if len(args) == 0 {
		z.usage(&z.out, true)
		return z.reply(0)
	}
	options, operands := cli.Getopt(args, "?", nil)
	if r := z.asked("help", args, options); r != nil {
		return *r
	}
	for _, command := range operands {
		if form, _ := zoneadmForm(command); form == "help" && command != "help" {
			return z.subUsage("help")
		}
		z.printSubUsage(command)
	}
	return z.reply(0)
}
