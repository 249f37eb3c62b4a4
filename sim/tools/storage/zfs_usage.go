package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/world/zfs"
)

// zfsUsage are the usage messages (get_usage in zfs_main.c), in the order of
// the whole message.
func zfsUsage() [][2]string {
	return [][2]string{
		{"create", "\tcreate [-Pnpv] [-o property=value] ... <filesystem>\n" +
			"\tcreate [-Pnpsv] [-b blocksize] [-o property=value] ... -V <size> <volume>\n"},
		{"destroy", "\tdestroy [-fnpRrv] <filesystem|volume>\n" +
			"\tdestroy [-dnpRrv] <filesystem|volume>@<snap>[%<snap>][,...]\n" +
			"\tdestroy <filesystem|volume>#<bookmark>\n"},
		{},
		{"snapshot", "\tsnapshot [-r] [-o property=value] ... <filesystem|volume>@<snap> ...\n"},
		{"clone", "\tclone [-p] [-o property=value] ... <snapshot> <filesystem|volume>\n"},
		{"promote", "\tpromote <clone-filesystem>\n"},
		{"rename", "\trename [-f] <filesystem|volume|snapshot> <filesystem|volume|snapshot>\n" +
			"\trename [-f] -p <filesystem|volume> <filesystem|volume>\n" +
			"\trename -r <snapshot> <snapshot>\n"},
		{},
		{"list", "\tlist [-Hp] [-r|-d max] [-o property[,...]] [-s property]...\n" +
			"\t    [-S property]... [-t type[,...]] [filesystem|volume|snapshot] ...\n"},
		{},
		{"set", "\tset <property=value> ... <filesystem|volume|snapshot> ...\n"},
		{"get", "\tget [-rHp] [-d max] [-o \"all\" | field[,...]]\n" +
			"\t    [-t type[,...]] [-s source[,...]]\n" +
			"\t    <\"all\" | property[,...]> [filesystem|volume|snapshot|bookmark] ...\n"},
		{"inherit", "\tinherit [-rS] <property> <filesystem|volume|snapshot> ...\n"},
		{},
		{"mount", "\tmount\n\tmount [-lvO] [-o opts] <-a | filesystem>\n"},
		{"unmount", "\tunmount [-f] <-a | filesystem|mountpoint>\n"},
		{},
		{"load-key", "\tload-key [-rn] [-L <keylocation>] <-a | filesystem|volume>\n"},
		{"unload-key", "\tunload-key [-r] <-a | filesystem|volume>\n"},
		{"change-key", "\tchange-key [-l] [-o keyformat=<value>]\n" +
			"\t    [-o keylocation=<value>] [-o pbkdf2iters=<value>]\n" +
			"\t    <filesystem|volume>\n\tchange-key -i [-l] <filesystem|volume>\n"},
	}
}

// printUsage is the usage of the subcommand, or of all of them.
func (z *zfsCall) printUsage(to *strings.Builder) {
	if z.command == "" {
		to.WriteString("usage: zfs command args ...\nwhere 'command' is one of the following:\n\n")
	} else {
		to.WriteString("usage:\n")
	}
	for _, u := range zfsUsage() {
		switch {
		case z.command == "" && u[0] == "":
			to.WriteString("\n")
		case z.command == "" || u[0] == z.command:
			to.WriteString(u[1])
		}
	}
	switch z.command {
	case "set", "get", "inherit", "list":
		printDatasetProperties(to)
		return
	case "":
		to.WriteString("\nEach dataset is of the form: pool/[dataset/]*dataset[@name]\n")
	}
	to.WriteString("\nFor the property list, run: zfs set|get\n\nFor the delegated permission list, run: zfs allow|unallow\n")
}

// printDatasetProperties is the table that follows the usage of set, get, list
// and inherit.
func printDatasetProperties(to *strings.Builder) {
	to.WriteString("\nThe following properties are supported:\n")
	fmt.Fprintf(to, "\n\t%-14s %s  %s   %s\n\n", "PROPERTY", "EDIT", "INHERIT", "VALUES")
	all := slices.DeleteFunc(zfs.DatasetProperties(), func(p *zfs.DatasetProperty) bool { return p.Hidden })
	slices.SortFunc(all, func(a, b *zfs.DatasetProperty) int { return strings.Compare(a.Name, b.Name) })
	for _, p := range all {
		edit, inherit := "YES    ", "   NO   "
		if p.ReadOnly() {
			edit = " NO    "
		}
		if p.Inheritable() {
			inherit = "  YES   "
		}
		fmt.Fprintf(to, "\t%-15s %s%s%s\n", p.Name, edit, inherit, p.Values)
	}
	to.WriteString("\nSizes are specified in bytes with standard units such as K, M, G, etc.\n" +
		"\nUser-defined properties can be specified by using a name containing a colon (:).\n")
}
