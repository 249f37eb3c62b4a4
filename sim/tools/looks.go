package tools

import (
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
)

// looks says whether a command changes nothing of the sled, whatever comes of it. Others may.
func looks(c cli.Call) bool {
	verb := verbOf(c)
	switch c.Tool {
	case "fstyp", "ls", "netstat", "prtconf", "ps", "svcprop", "svcs", "uname", "zonename":
		return true
	case "dladm", "ipadm":
		return strings.HasPrefix(verb, "show-")
	case "zfs":
		return verb == "get" || verb == "list"
	case "zoneadm":
		return slices.Contains(c.Args, "list")
	case "zonecfg": // -z ZONE export
		return len(c.Args) == 3 && (c.Args[2] == "export" || c.Args[2] == "info")
	case "zpool":
		return verb == "get" || verb == "list" || verb == "status"
	}
	return false
}

func verbOf(c cli.Call) string {
	if len(c.Args) == 0 {
		return ""
	}
	return c.Args[0]
}
