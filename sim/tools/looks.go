package tools

import (
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// looks says whether a command changes nothing of the sled, whether it succeeds or fails. Others may.
func looks(c cli.Call) bool {
	verb := verbOf(c.Args)
	switch c.Tool {
	case "ctrun", "fstyp", "kstat", "ldd", "ls", "netstat", "pcred", "ppriv", "prtconf", "ps", "psrinfo", "svcprop", "svcs", "swap", "uname", "zonename":
		return true
	case "mount":
		return verb == "-p"
	case "dladm", "ipadm":
		return strings.HasPrefix(verb, "show-")
	case "opteadm":
		return verb == "--version" || verb == "list-ports" || strings.HasPrefix(verb, "dump-")
	case "zfs":
		return verb == "get" || verb == "list"
	case "zoneadm":
		if verb == "-z" && len(c.Args) > 2 { // a zone may be called list
			verb = verbOf(c.Args[2:])
		}
		return verb == "list"
	case "zonecfg": // -z ZONE export
		return len(c.Args) == 3 && (c.Args[2] == "export" || c.Args[2] == "info")
	case "zpool":
		return verb == "get" || verb == "list" || verb == "status"
	}
	return false
}

func verbOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
