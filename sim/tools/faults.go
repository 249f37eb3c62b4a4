package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/zfs"
	"github.com/sledctl/sledctl/sim/world/zones"
)

// commandFaults are the faults that any command can suffer.
func commandFaults() []string {
	return []string{
		world.FaultFail, world.FaultAnswer, world.FaultBusy, world.FaultHalf, world.FaultHang, world.FaultMissed, world.FaultLoseDisk, world.FaultFailDisk,
		world.FaultKilled, world.FaultKill, world.FaultKillAfter, world.FaultKillDuring,
	}
}

// faulted is the first transaction of a command that a fault has hit.
func faulted(tx *world.Tx, f *world.Fault, tool cli.Tool, c cli.Call) cli.Reply {
	switch f.Name {
	case world.FaultFail, world.FaultBusy:
		return failure(f, c)
	case world.FaultAnswer:
		return cli.Reply{Stdout: strings.TrimSuffix(f.Text, "\n") + "\n", Exit: f.Exit}
	case world.FaultHalf:
		reply := tool(tx, c)
		reply.Add(failure(f, c))
		return reply
	case world.FaultLoseDisk:
		zfs.LoseDisk(tx, f.Text)
	case world.FaultFailDisk:
		zfs.FailDisk(tx, f.Text)
	case world.FaultKilled:
		if c.Tool == "zonecfg" {
			return killedSaving(tx, tool, c)
		}
	case world.FaultHang, world.FaultKill:
		return cli.Reply{}
	}
	return tool(tx, c)
}

// killedSaving is a zonecfg that SIGKILL ends between a zone's file and the index: the
// file of a zone that it makes exists by then, that of one that it deletes still does
// (zonecfg_save, zonecfg_destroy in usr/src/lib/libzonecfg/common/libzonecfg.c).
func killedSaving(tx *world.Tx, tool cli.Tool, c cli.Call) cli.Reply {
	before := slices.Clone(tx.State.Zones)
	reply := tool(tx, c)
	after := slices.Clone(tx.State.Zones)
	for _, z := range slices.Concat(before, after) {
		if slices.Contains(before, z) == slices.Contains(after, z) {
			continue
		}
		if err := zones.LeaveZoneFile(tx, z); err != nil {
			reply.Stderr += err.Error() + "\n"
		}
	}
	return reply
}

// failure is how a command ends that a fault makes fail.
func failure(f *world.Fault, c cli.Call) cli.Reply {
	text := f.Text
	switch {
	case text != "":
	case f.Name == world.FaultBusy:
		text = busyText(c)
	default:
		text = c.Tool + ": I/O error"
	}
	return cli.Reply{Stderr: strings.TrimSuffix(text, "\n") + "\n", Exit: max(f.Exit, 1)}
}

// busyText is what the command says when what it works on is in use.
func busyText(c cli.Call) string {
	last := c.Tool
	if len(c.Args) > 0 {
		last = c.Args[len(c.Args)-1]
	}
	switch c.Tool {
	case "zfs":
		// zfs_standard_error in usr/src/lib/libzfs/common/libzfs_util.c.
		verb := "destroy"
		if len(c.Args) > 0 {
			verb = c.Args[0]
		}
		return fmt.Sprintf("cannot %s '%s': dataset is busy", verb, last)
	case "zpool":
		return fmt.Sprintf("cannot export '%s': pool is busy", last)
	case "dladm":
		// do_delete_vnic_common in usr/src/cmd/dladm/dladm.c.
		return "dladm: vnic deletion failed: link busy"
	}
	return c.Tool + ": Device busy"
}
