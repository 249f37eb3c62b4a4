package system

import (
	"fmt"
	"path"
	"slices"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Ctrun is ctrun(1) of a propolis-server in the global zone that tells its version
// (usr/src/cmd/ctrun/ctrun.c; bin/propolis-server/src/main.rs of oxidecomputer/propolis).
func Ctrun(tx *world.Tx, c cli.Call) cli.Reply {
	contract := []string{"-l", "child", "-o", "noorphan"}
	n := len(contract)
	cli.Simulated(len(c.Args) == n+2 && slices.Equal(c.Args[:n], contract) && c.Args[n+1] == "--version" && c.Zone == world.GlobalZone)
	if _, err := tx.Files.Stat(c.Args[n]); err != nil {
		return cli.Reply{Stderr: "ctrun: exec failed: No such file or directory\n", Exit: 127}
	}
	cli.Simulated(path.Base(c.Args[n]) == "propolis-server")
	return cli.Reply{Stdout: "propolis-server 0.1.0\n"}
}

// Ldd is ldd(1) of a propolis-server (usr/src/cmd/sgs/ldd/common/ldd.c).
//
// Guess libraries-of-propolis-server: the libraries that a propolis-server wants are those of the
// system, among them libdladm and libnvpair.
// Check: `ldd /opt/oxide/propolis-server/bin/propolis-server`
func Ldd(tx *world.Tx, c cli.Call) cli.Reply {
	cli.Simulated(len(c.Args) == 1 && c.Zone == world.GlobalZone)
	if _, err := tx.Files.Stat(c.Args[0]); err != nil {
		return cli.Reply{Stderr: fmt.Sprintf("ldd: %s: cannot open file: No such file or directory\n", c.Args[0]), Exit: 1}
	}
	cli.Simulated(path.Base(c.Args[0]) == "propolis-server")
	var reply cli.Reply
	for _, name := range []string{"libdladm.so.1", "libdlpi.so.1", "libnvpair.so.1", "libsocket.so.1", "libnsl.so.1", "libc.so.1"} {
		reply.Stdout += fmt.Sprintf("\t%s =>\t /lib/64/%s\n", name, name)
	}
	return reply
}
