// Package tools runs the commands of the simulated sled, each of which is in a
// package below. A command is strict: it takes the argv that the real one takes
// and answers with its texts, on its streams, with its exit codes; what the real
// one would refuse is refused. It is written from the manual pages and the gate's
// sources, never from what a driver sends; what no driver, script or manual page
// uses is refused as not simulated.
package tools

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/host"
	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/tools/net"
	"github.com/sledctl/sledctl/sim/tools/opte"
	"github.com/sledctl/sledctl/sim/tools/services"
	"github.com/sledctl/sledctl/sim/tools/shell"
	"github.com/sledctl/sledctl/sim/tools/storage"
	"github.com/sledctl/sledctl/sim/tools/system"
	"github.com/sledctl/sledctl/sim/tools/zoneadm"
	"github.com/sledctl/sledctl/sim/tools/zonecfg"
	"github.com/sledctl/sledctl/sim/world"
)

// commands are those of the simulated sled.
func commands() map[string]cli.Tool {
	return map[string]cli.Tool{
		"chmod": system.Chmod, "kstat": system.Kstat, "ls": system.Ls, "mount": system.Mount, "umount": system.Umount, "pcred": system.Pcred, "ppriv": system.Ppriv, "ps": system.Ps, "prtconf": system.Prtconf, "psrinfo": system.Psrinfo,
		"pkg": system.Pkg, "bhyvectl": system.Bhyvectl, "ctrun": system.Ctrun, "ldd": system.Ldd, "rsrvrctl": system.Rsrvrctl, "swap": system.Swap, "uname": system.Uname, "zonename": system.Zonename, "pfexec": pfexec,
		"dladm": net.Dladm, "ipadm": net.Ipadm, "netstat": net.Netstat, "route": net.Route, "opteadm": opte.Opteadm,
		"svcadm": services.Svcadm, "svccfg": services.Svccfg, "svcprop": services.Svcprop, "svcs": services.Svcs,
		"fstyp": storage.Fstyp, "zfs": storage.Zfs, "zpool": storage.Zpool,
		"zlogin": shell.Zlogin, "zoneadm": zoneadm.Run, "zonecfg": zonecfg.Run,
	}
}

// pfexec is not simulated: each command has all privileges here.
func pfexec(*world.Tx, cli.Call) cli.Reply { panic(world.Unsimulated{}) }

// Lookup finds a command of the simulated sled by its name.
func Lookup(name string) (cli.Tool, bool) {
	tool, ok := commands()[name]
	if !ok {
		return nil, false
	}
	return cli.Refusing(tool), true
}

// find is Lookup, and the programs that are no part of the operating system: a
// caller that runs one has found its file.
func find(name string) (cli.Tool, bool) {
	if name == shell.PropolisProgram {
		return shell.PropolisServer, true
	}
	return Lookup(name)
}

// Script finds a command that somebody else has put onto the sled: a script in
// /usr/sbin or /usr/bin.
func Script(files host.Files, name string) (cli.Tool, bool) {
	for _, dir := range []string{"/usr/sbin", "/usr/bin"} {
		file := path.Join(dir, name)
		info, err := files.Stat(file)
		if err != nil || !info.Mode.IsRegular() || info.Mode&0o111 == 0 || info.Size == 0 {
			continue
		}
		return func(tx *world.Tx, c cli.Call) cli.Reply {
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
func CommonNames() []string { return []string{"chmod", "ldd", "ls", "ps"} }

// Names are the other commands that the sled has.
func Names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(commands())), func(name string) bool { return slices.Contains(CommonNames(), name) })
}
