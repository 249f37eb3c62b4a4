package zonecfg

import (
	"fmt"
	"io"
	"strings"
)

// This file is what zonecfg(8) says about itself. The lines that show a
// command's form are those of usr/src/cmd/zonecfg/zonecfg.c; the paragraph that
// follows one in "help COMMAND" is shorter here.

// cfgHelp says which parts of the usage are shown.
type cfgHelp int

const (
	cfgHelpUsage cfgHelp = 1 << iota
	cfgHelpSubcommands
	cfgHelpSyntax
	cfgHelpResources
	cfgHelpProperties
	cfgHelpMeta
	cfgHelpResourceProperties = cfgHelpResources | cfgHelpProperties
)

// cfgShortUsage is the form of each command.
func cfgShortUsage(command string) string {
	switch command {
	case "add":
		return "add <resource-type>\n\t(global scope)\nadd <property-name> <property-value>\n\t(resource scope)"
	case "clear":
		return "clear <property-name>"
	case "create":
		return "create [-F] [ -a <path> | -b | -t <template> ]"
	case "delete":
		return "delete [-F]"
	case "exit":
		return "exit [-F]"
	case "export":
		return "export [-f output-file]"
	case "help":
		return "help [commands] [syntax] [usage] [<command-name>]"
	case "info":
		return "info [<resource-type> [property-name=property-value]*]"
	case "remove":
		return "remove [-F] <resource-type> [ <property-name>=<property-value> ]*\n\t(global scope)\n" +
			"remove <property-name> <property-value>\n\t(resource scope)"
	case "revert":
		return "revert [-F]"
	case "select":
		return "select <resource-type> { <property-name>=<property-value> }"
	case "set":
		return "set <property-name>=<property-value>"
	}
	return command // cancel, commit, end, verify
}

func cfgLongHelp(command string) string {
	return map[string]string{
		"add":    "Add specified resource to configuration.",
		"cancel": "Cancels resource/property specification.",
		"clear":  "Clears property values.",
		"commit": "Commits current configuration.",
		"create": "Creates a configuration for the specified zone.",
		"delete": "Deletes the specified zone.",
		"end":    "Ends resource/property specification.",
		"exit":   "Exits the program.",
		"export": "Prints configuration to standard output, or to output-file.",
		"help":   "Prints help message.",
		"info":   "Displays information about the current configuration.",
		"remove": "Remove specified resource from configuration.",
		"revert": "Reverts configuration back to the last committed state.",
		"select": "Selects a resource to modify.",
		"set":    "Sets property values.",
		"verify": "Verifies current configuration for correctness.",
	}[command]
}

// shortUsage is for bad syntax.
func (s *cfgSession) shortUsage(command string) {
	switch {
	case s.fileMode && s.fileName == "-":
		fmt.Fprintf(&s.err, "syntax error on line %d\n", s.line-1)
	case s.fileMode:
		fmt.Fprintf(&s.err, "syntax error on line %d of %s\n", s.line-1, s.fileName)
	}
	fmt.Fprintf(&s.err, "usage:\n%s\n", cfgShortUsage(command))
	s.sawError = true
}

// longUsage is for bad semantics.
func (s *cfgSession) longUsage(command string) {
	fmt.Fprintf(&s.err, "usage:\n%s\n\t%s\n", cfgShortUsage(command), cfgLongHelp(command))
	s.sawError = true
}

// longerUsage is for "help COMMAND" and "COMMAND -?".
func (s *cfgSession) longerUsage(command string) {
	fmt.Fprintf(&s.out, "usage:\n%s\n\t%s\n", cfgShortUsage(command), cfgLongHelp(command))
	switch command {
	case "add", "info", "remove", "select":
		s.out.WriteString("\n")
		s.usage(&s.out, cfgHelpResourceProperties, true)
	case "clear", "set":
		s.out.WriteString("\n")
		s.usage(&s.out, cfgHelpProperties, true)
	}
}

func (s *cfgSession) help(st cfgStatement) {
	topic := ""
	if len(st.args) > 0 {
		topic = st.args[0]
	}
	switch topic {
	case "", "commands":
		s.usage(&s.out, cfgHelpSubcommands, true)
	case "usage":
		s.usage(&s.out, cfgHelpUsage, true)
	case "syntax":
		s.usage(&s.out, cfgHelpSyntax|cfgHelpResourceProperties, true)
	case "-?":
		s.longerUsage("help")
	default:
		if cfgLongHelp(topic) != "" {
			s.longerUsage(topic)
			return
		}
		fmt.Fprintf(&s.err, "Unknown help subject %s.  ", topic)
		s.usage(&s.err, cfgHelpMeta, false)
	}
}

// usage prints parts of the usage.
func (s *cfgSession) usage(w io.Writer, parts cfgHelp, verbose bool) {
	if parts&cfgHelpMeta != 0 {
		io.WriteString(w, "More help is available for the following:\n\n\tcommands ('help commands')\n\tsyntax ('help syntax')\n"+
			"\tusage ('help usage')\n\nYou may also obtain help on any command by typing 'help <command-name>.'\n")
	}
	if parts&cfgHelpUsage != 0 {
		io.WriteString(w, "usage:\tzonecfg help\n\tzonecfg -z <zone>\t\t\t(interactive)\n\tzonecfg -z <zone> <command>\n"+
			"\tzonecfg -z <zone> -f <command-file>\n")
	}
	if parts&cfgHelpSubcommands != 0 {
		io.WriteString(w, "Commands:\n\n")
		for _, name := range cfgCommandNames() {
			fmt.Fprintln(w, cfgShortUsage(name))
			if verbose {
				fmt.Fprintf(w, "\t%s\n\n", cfgLongHelp(name))
			}
		}
	}
	if parts&cfgHelpSyntax != 0 {
		if !verbose {
			io.WriteString(w, "\n")
		}
		io.WriteString(w, "<zone> := [A-Za-z0-9][A-Za-z0-9_.-]*\n"+
			"\t(except the reserved words 'global' and anything starting with 'SUNW')\n\tName must be less than 64 characters.\n")
		if verbose {
			io.WriteString(w, "\n")
		}
	}
	if parts&cfgHelpResources != 0 {
		fmt.Fprintf(w, "<resource type> := %s\n\n", strings.Join(cfgResourceNames(), " | "))
	}
	if parts&cfgHelpProperties != 0 {
		io.WriteString(w, "For resource type ... there are property types ...:\n")
		for _, name := range cfgGlobalNames() {
			fmt.Fprintf(w, "\t(global)\t%s\n", name)
		}
		for _, kind := range cfgResourceNames() {
			fmt.Fprintf(w, "\t%s\t\t%s\n", kind, strings.Join(cfgPropertiesOf(kind), ", "))
		}
	}
}

// cfgPropertiesOf lists the properties of a resource, in the order in which
// the usage has them.
func cfgPropertiesOf(kind string) []string {
	switch kind {
	case "fs":
		return []string{"dir", "special", "raw", "type", "options"}
	case "net":
		return []string{"address", "allowed-address", "physical", "defrouter"}
	case "device":
		return []string{"match"}
	case "rctl":
		return []string{"name", "value"}
	case "attr":
		return []string{"name", "type", "value"}
	case "dataset":
		return []string{"name"}
	case "dedicated-cpu":
		return []string{"ncpus", "importance"}
	case "capped-cpu":
		return []string{"ncpus"}
	case "capped-memory":
		return []string{"physical", "swap", "locked"}
	case "admin":
		return []string{"user", "auths"}
	case "security-flags":
		return []string{"default", "lower", "upper"}
	}
	return nil
}
