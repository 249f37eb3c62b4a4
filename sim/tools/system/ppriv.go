package system

import (
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
	if tx.TakeFault(cli.Words(c), world.FaultFewPrivileges) != nil {
		effective = "basic"
	}
	return cli.Reply{Stdout: fmt.Sprintf("%d:\tsledctl\nflags = <none>\n\tE: %s\n\tI: basic\n\tP: %s\n\tL: all\n", pid, effective, effective)}
}
