package system

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
)

// This file is ps(1) as far as it lists the processes of zones in a format of
// one's own: -e or -z, and -o (usr/src/cmd/ps/ps.c).

// psFields are the columns that the simulated sled knows, with their headings
// and widths; the last heading and the last value are not padded.
func psFields() map[string]struct {
	heading string
	width   int
} {
	type field = struct {
		heading string
		width   int
	}
	return map[string]field{
		"user": {"USER", 8}, "pid": {"PID", 5}, "ppid": {"PPID", 5}, "zone": {"ZONE", 8}, "zoneid": {"ZONEID", 5},
		"stime": {"STIME", 8}, "time": {"TIME", 11}, "args": {"COMMAND", 80}, "comm": {"COMMAND", 80},
	}
}

const psUsage = "usage: ps [ -aAdefHlcjLPWyZ ] [ -o format ] [ -t termlist ]\n" +
	"\t[ -u userlist ] [ -U userlist ] [ -G grouplist ]\n" +
	"\t[ -p proclist ] [ -g pgrplist ] [ -s sidlist ]\n" +
	"\t[ -z zonelist ] [-h lgrplist]\n" +
	"  'format' is one or more of:\n\targs comm pid ppid stime time user zone zoneid\n"

// Ps lists processes.
func Ps(tx *world.Tx, c cli.Call) cli.Reply {
	options, operands := cli.Getopt(c.Args, "jlfceAadLPWyZHh:t:p:g:u:U:G:n:s:o:z:", nil)
	var fields, zones []string
	every, wrong := false, len(operands) > 0
	var said strings.Builder
	for _, o := range options {
		switch o.Letter {
		case 'e', 'A':
			every = true
		case 'o':
			for _, name := range listed(o.Value) {
				if _, ok := psFields()[name]; !ok {
					fmt.Fprintf(&said, "ps: unknown output format: -o %s\n", name)
					wrong = true
				}
				fields = append(fields, name)
			}
		case 'z':
			for _, name := range listed(o.Value) {
				if !inKernel(tx, c, name) {
					fmt.Fprintf(&said, "ps: unknown zone %s\n", name)
					wrong = true
				}
				zones = append(zones, name)
			}
		default:
			return cli.Reply{Stderr: "ps: the simulated sled has only -e, -z and -o\n", Exit: 1}
		}
	}
	switch {
	case wrong:
		return cli.Reply{Stderr: said.String() + psUsage, Exit: 1}
	case len(fields) == 0 || !every && len(zones) == 0:
		return cli.Reply{Stderr: "ps: the simulated sled has only -e, -z and -o\n", Exit: 1}
	}
	return psTable(tx, fields, psProcesses(tx, c, zones))
}

// listed parts a list at commas and blanks.
func listed(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// inKernel says whether a zone can be named: inside a zone there is only itself.
func inKernel(tx *world.Tx, c cli.Call, name string) bool {
	if c.Zone != world.GlobalZone || name == world.GlobalZone {
		return c.Zone == name
	}
	z := tx.FindZone(name)
	return z != nil && z.Kernel != nil
}

type psProcess struct {
	zone      string
	zoneID    int
	pid, ppid int
	started   time.Time
	args      []string
}

// psProcesses are those of the zones, or of all that can be seen: in each the
// few that a zone always has, and what its services have started.
func psProcesses(tx *world.Tx, c cli.Call, zones []string) []psProcess {
	var all []psProcess
	for _, z := range tx.KernelZones() {
		shown := zones == nil && (c.Zone == world.GlobalZone || c.Zone == z.Name) || slices.Contains(zones, z.Name)
		if !shown || z.Kernel.State != world.ZoneRunning {
			continue
		}
		// Guess: the numbers; a real zone has about thirty more.
		first := 10000 + 4*(z.Kernel.ID%4000)
		add := func(n, parent int, args ...string) {
			all = append(all, psProcess{zone: z.Name, zoneID: z.Kernel.ID, pid: first + n, ppid: parent, started: z.Kernel.Booted, args: args})
		}
		add(0, 1, "zsched")
		add(1, first, "/sbin/init")
		add(2, first+1, "/lib/svc/bin/svc.startd")
		add(3, first+1, "/lib/svc/bin/svc.configd")
		for _, p := range tx.State.Processes {
			if p.Zone == z.Name {
				all = append(all, psProcess{zone: z.Name, zoneID: z.Kernel.ID, pid: p.PID, ppid: first + 2, started: p.Started, args: p.Argv})
			}
		}
	}
	return all
}

func psTable(tx *world.Tx, fields []string, processes []psProcess) cli.Reply {
	var b strings.Builder
	line := func(value func(field string) string) {
		for i, name := range fields {
			text, width := value(name), psFields()[name].width
			left := name == "args" || name == "comm"
			switch last := i == len(fields)-1; {
			case left && last:
				b.WriteString(text[:min(len(text), width)])
			case left:
				fmt.Fprintf(&b, "%-*.*s ", width, width, text)
			case last:
				fmt.Fprintf(&b, "%*s", width, text)
			default:
				fmt.Fprintf(&b, "%*s ", width, text)
			}
		}
		b.WriteByte('\n')
	}
	line(func(field string) string { return psFields()[field].heading })
	for _, p := range processes {
		line(func(field string) string { return p.value(tx, field) })
	}
	if len(processes) == 0 {
		return cli.Reply{Stdout: b.String(), Exit: 1}
	}
	return cli.Reply{Stdout: b.String()}
}

func (p psProcess) value(tx *world.Tx, field string) string {
	switch field {
	case "user":
		return "root"
	case "pid":
		return fmt.Sprint(p.pid)
	case "ppid":
		return fmt.Sprint(p.ppid)
	case "zone":
		return p.zone
	case "zoneid":
		return fmt.Sprint(p.zoneID)
	case "time":
		return "00:00"
	case "comm":
		return p.args[0]
	case "stime": // the day, of one that is older than a day (prtime)
		if tx.Now.Sub(p.started) >= 24*time.Hour {
			return p.started.UTC().Format("Jan_02")
		}
		return p.started.UTC().Format("15:04:05")
	}
	return strings.Join(p.args, " ")
}
