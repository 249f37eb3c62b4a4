package tools

import (
	"path"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/world"
)

// Lookup finds a command of the simulated sled by its name.
func Lookup(name string) (Tool, bool) {
	switch name {
	case "chmod":
		return Chmod, true
	case "ls":
		return Ls, true
	case "dladm":
		return Dladm, true
	case "fstyp":
		return Fstyp, true
	case "ipadm":
		return Ipadm, true
	case "mount":
		return Mount, true
	case "netstat":
		return Netstat, true
	case "pfexec":
		return Pfexec, true
	case "ps":
		return Ps, true
	case "prtconf":
		return Prtconf, true
	case "route":
		return Route, true
	case "rsrvrctl":
		return Rsrvrctl, true
	case "svcadm":
		return Svcadm, true
	case "svccfg":
		return Svccfg, true
	case "svcprop":
		return Svcprop, true
	case "svcs":
		return Svcs, true
	case "umount":
		return Umount, true
	case "uname":
		return Uname, true
	case "zfs":
		return Zfs, true
	case "zlogin":
		return Zlogin, true
	case "zoneadm":
		return Zoneadm, true
	case "zonecfg":
		return Zonecfg, true
	case "zonename":
		return Zonename, true
	case "zpool":
		return Zpool, true
	}
	return nil, false
}

// find is Lookup, and the programs that are no part of the operating system:
// whoever runs them has found their file.
func find(name string) (Tool, bool) {
	if name == propolisProgram {
		return propolisServer, true
	}
	return Lookup(name)
}

// Script finds a command that somebody else has put onto the sled: a script in
// /usr/sbin or /usr/bin.
func Script(files host.Files, name string) (Tool, bool) {
	for _, dir := range []string{"/usr/sbin", "/usr/bin"} {
		file := path.Join(dir, name)
		info, err := files.Stat(file)
		if err != nil || !info.Mode.IsRegular() || info.Mode&0o111 == 0 || info.Size == 0 {
			continue
		}
		return func(tx *world.Tx, c Call) Reply {
			words := []string{host.Quote(file)}
			for _, w := range c.Args {
				words = append(words, host.Quote(w))
			}
			return RunShell(tx, c.Zone, strings.Join(words, " "), c.Env, c.Stdin)
		}, true
	}
	return nil, false
}

// CommonNames are the commands of the sled that every system has. They stand for
// the real ones only where a program looks for the sled's commands, and not in a
// shell, whose files are not the sled's.
func CommonNames() []string { return []string{"chmod", "ls", "ps"} }

// Names are the other commands that the sled has.
func Names() []string {
	return []string{
		"dladm", "fstyp", "ipadm", "mount", "netstat", "pfexec", "prtconf", "route", "rsrvrctl", "svcadm", "svccfg", "svcprop", "svcs", "umount", "uname", "zfs", "zlogin", "zoneadm", "zonecfg",
		"zonename", "zpool",
	}
}
