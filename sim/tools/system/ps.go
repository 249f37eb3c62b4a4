package system

import (
	"fmt"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file is ps(1) as far as it lists the processes of one zone in a format of
// one's own: -z and -o (usr/src/cmd/ps/ps.c).

// psColumn is a column that the simulated sled knows, with its heading and width; the
// last heading and the last value are not padded.
type psColumn struct {
	heading string
	width   int
	value   func(tx *world.Tx, p psProcess) string
}

func psColumns() map[string]psColumn {
	return map[string]psColumn{
		"pid":  {"PID", 5, func(_ *world.Tx, p psProcess) string { return fmt.Sprint(p.pid) }},
		"ppid": {"PPID", 5, func(_ *world.Tx, p psProcess) string { return fmt.Sprint(p.ppid) }},
		"stime": {"STIME", 8, func(tx *world.Tx, p psProcess) string { // the day, of one that is older than a day (prtime)
			if tx.Now.Sub(p.started) >= 24*time.Hour {
				return p.started.UTC().Format("Jan_02")
			}
			return p.started.UTC().Format("15:04:05")
		}},
		"time": {"TIME", 11, func(*world.Tx, psProcess) string { return "00:00" }},
		"args": {"COMMAND", 80, func(_ *world.Tx, p psProcess) string { return strings.Join(p.args, " ") }},
	}
}

const psUsage = "usage: ps [ -aAdefHlcjLPWyZ ] [ -o format ] [ -t termlist ]\n" +
	"\t[ -u userlist ] [ -U userlist ] [ -G grouplist ]\n" +
	"\t[ -p proclist ] [ -g pgrplist ] [ -s sidlist ]\n" +
	"\t[ -z zonelist ] [-h lgrplist]\n" +
	"  'format' is one or more of:\n\targs comm pid ppid stime time user zone zoneid\n"

// Ps lists processes. Its last column is args.
func Ps(tx *world.Tx, c cli.Call) cli.Reply {
	given, operands := cli.Options(c.Args, "o:z:", nil)
	name := given.One('z')
	z := tx.FindZone(name)
	names, known := strings.Split(given.One('o'), ","), psColumns()
	one := name != "" && name != world.GlobalZone && !strings.ContainsAny(name, ", ")
	cli.Simulated(len(operands) == 0 && c.Zone == world.GlobalZone && one && names[len(names)-1] == "args")
	if z == nil || z.Kernel == nil { // it asks the kernel for the zone's id
		return cli.Reply{Stderr: "ps: unknown zone " + name + "\n" + psUsage, Exit: 1}
	}
	var b strings.Builder
	line := func(value func(psColumn) string) {
		for _, name := range names {
			column, ok := known[name]
			cli.Simulated(ok)
			if text := value(column); name == "args" {
				b.WriteString(text[:min(len(text), column.width)] + "\n")
			} else {
				fmt.Fprintf(&b, "%*s ", column.width, text)
			}
		}
	}
	line(func(column psColumn) string { return column.heading })
	for _, p := range psProcesses(tx, z) {
		line(func(column psColumn) string { return column.value(tx, p) })
	}
	return cli.Reply{Stdout: b.String()}
}

type psProcess struct {
	pid, ppid int
	started   time.Time
	args      []string
}

// psProcesses are those of a zone: the few that a zone always has, and what its
// services have started.
//
// Guess processes-of-a-zone: the numbers of the processes that every zone has; a real zone has
// about thirty more.
// Check: `ps -z ZONE -o pid,ppid,args`
func psProcesses(tx *world.Tx, z *world.Zone) []psProcess {
	if z.Kernel.State != world.ZoneRunning {
		return nil
	}
	first, booted := 10000+4*(z.Kernel.ID%4000), z.Kernel.Booted
	all := []psProcess{
		{first, 1, booted, []string{"zsched"}}, {first + 1, first, booted, []string{"/sbin/init"}},
		{first + 2, first + 1, booted, []string{"/lib/svc/bin/svc.startd"}}, {first + 3, first + 1, booted, []string{"/lib/svc/bin/svc.configd"}},
	}
	for _, p := range tx.State.Processes {
		if p.Zone == z.Name {
			all = append(all, psProcess{p.PID, first + 2, p.Started, p.Argv})
		}
	}
	return all
}
