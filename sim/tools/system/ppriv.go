package system

import (
	"cmp"
	"fmt"
	"strconv"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// Ppriv is ppriv(1) of one process: its flags and its sets of privileges, with the form
// that the manual page shows. A process of which the sled knows nothing is the caller,
// which is root's.
func Ppriv(tx *world.Tx, c cli.Call) cli.Reply {
	_, operands := cli.Options(c.Args, "", nil)
	pid, err := strconv.ParseUint(cli.Operand(operands), 10, 32)
	cli.Simulated(err == nil && c.Zone == world.GlobalZone)
	effective := "all"
	if f := tx.TakeFault(cli.Words(c), world.FaultFewPrivileges); f != nil {
		effective = cmp.Or(f.Text, "basic")
	}
	return cli.Reply{Stdout: fmt.Sprintf("%d:\tsledctl\nflags = <none>\n\tE: %s\n\tI: basic\n\tP: %s\n\tL: all\n", pid, effective, effective)}
}

// Pcred is pcred(1) of one process: its users and groups, in the short form where all three
// are one (usr/src/cmd/ptools/pcred/pcred.c). The caller is root's here, too.
func Pcred(tx *world.Tx, c cli.Call) cli.Reply {
	_, operands := cli.Options(c.Args, "", nil)
	pid, err := strconv.ParseUint(cli.Operand(operands), 10, 32)
	cli.Simulated(err == nil && c.Zone == world.GlobalZone)
	user := "0"
	if f := tx.TakeFault(cli.Words(c), world.FaultFewPrivileges); f != nil {
		user = cmp.Or(f.Text, "100")
	}
	return cli.Reply{Stdout: fmt.Sprintf("%d:\te/r/suid=%s  e/r/sgid=%s\n", pid, user, user)}
}
