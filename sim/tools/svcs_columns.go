package tools

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
)

// svcsColumn is a column of svcs(1), by its heading (the table columns in
// usr/src/cmd/svc/svcs/svcs.c).
type svcsColumn string

// svcsColumnNamed looks a column up as -o and -s name it.
func svcsColumnNamed(name string) (svcsColumn, bool) {
	column := svcsColumn(strings.ToUpper(name))
	return column, column.width() > 0
}

// width is how wide the column is at least; 0: there is no such column.
func (c svcsColumn) width() int {
	switch c {
	case "CTID":
		return 6
	case "DESC":
		return 100
	case "FMRI":
		return 50
	case "INST", "SCOPE", "SVC":
		return 20
	case "N":
		return 1
	case "S", "SN":
		return 2
	case "NSTA", "STA":
		return 4
	case "NSTATE":
		return 13
	case "STATE":
		return 14
	case "STIME":
		return 8
	case "ZONE":
		return 16
	}
	return 0
}

// cell is the column's text for an instance, padded, with the blank behind it.
func (c svcsColumn) cell(s *svcs, r svcsRow) string {
	pad := func(text string) string { return fmt.Sprintf("%-*s ", c.width(), text) }
	star := ""
	if r.next != "" && !s.nextShown {
		star = "*"
	}
	switch c {
	case "CTID":
		if r.service == nil || r.service.Contract == 0 {
			return fmt.Sprintf("%6s ", "-")
		}
		return fmt.Sprintf("%6d ", r.service.Contract)
	case "DESC":
		return pad(cmp.Or(r.description(), "-"))
	case "FMRI":
		return pad(r.FMRI())
	case "INST":
		return pad(r.Instance.Name)
	case "SCOPE":
		return pad("localhost")
	case "SVC":
		return pad(r.Entity.Service.Name)
	case "N":
		return pad(nextLetter(r.next))
	case "NSTA":
		return pad(shortState(r.next, "-"))
	case "NSTATE":
		return pad(cmp.Or(r.next, "-"))
	case "S":
		return fmt.Sprintf("%-3s", stateLetter(r.state)+star)
	case "SN":
		return fmt.Sprintf("%-3s", stateLetter(r.state)+nextLetter(r.next))
	case "STA":
		return pad(shortState(r.state, "?") + star)
	case "STATE":
		return pad(cmp.Or(r.state, "-") + star)
	case "STIME":
		if r.state == "" {
			return pad("-")
		}
		return pad(svcsTime(s.tx.Now, r.service.Since(s.tx.Now)))
	}
	return pad(r.zone)
}

func (r svcsRow) description() string {
	return strings.ReplaceAll(r.Entity.Service.Snapshot(r.Instance).Value("tm_common_name", "C"), "\n", " ")
}

func stateLetter(state string) string {
	switch state {
	case world.Uninitialized:
		return "u"
	case world.Offline:
		return "0"
	case world.Online:
		return "1"
	case world.Maintenance:
		return "m"
	case world.Disabled:
		return "d"
	case world.Degraded:
		return "D"
	}
	return "?"
}

func nextLetter(next string) string {
	if next == "" {
		return "-"
	}
	return stateLetter(next)
}

func shortState(state, none string) string {
	switch state {
	case world.Uninitialized:
		return "UN"
	case world.Offline:
		return "OFF"
	case world.Online:
		return "ON"
	case world.Maintenance:
		return "MNT"
	case world.Disabled:
		return "DIS"
	case world.Degraded:
		return "DGD"
	}
	return none
}

// stateRank is sortkey_states(): what is more interesting comes later.
func stateRank(state string) int {
	switch state {
	case world.Disabled:
		return 1
	case world.Online:
		return 2
	case world.Degraded:
		return 3
	case world.Offline:
		return 4
	case world.Maintenance:
		return 5
	case world.Uninitialized:
		return 6
	}
	return 7
}

// compare orders two rows by the column.
func (c svcsColumn) compare(s *svcs, a, b svcsRow) int {
	switch c {
	case "STATE", "STA", "S":
		return cmp.Compare(stateRank(a.state), stateRank(b.state))
	case "NSTATE", "NSTA", "N":
		return cmp.Compare(stateRank(a.next), stateRank(b.next))
	case "SN":
		return cmp.Or(cmp.Compare(stateRank(a.state), stateRank(b.state)), cmp.Compare(stateRank(a.next), stateRank(b.next)))
	case "STIME":
		return a.service.Since(s.tx.Now).Compare(b.service.Since(s.tx.Now))
	case "CTID":
		left, _ := strconv.Atoi(strings.TrimSpace(c.cell(s, a)))
		right, _ := strconv.Atoi(strings.TrimSpace(c.cell(s, b)))
		return cmp.Compare(left, right)
	case "DESC":
		return 0
	}
	return strings.Compare(c.cell(s, a), c.cell(s, b))
}

// svcsHelp is what -? adds to the usage.
func svcsHelp() string {
	return "\n" +
		"\t-a  list all service instances rather than only those that are enabled\n" +
		"\t-d  list dependencies of the specified service(s)\n" +
		"\t-D  list dependents of the specified service(s)\n" +
		"\t-H  omit header line from output\n" +
		"\t-l  list detailed information about the specified service(s)\n" +
		"\t-L  list the log file associated with the specified service(s)\n" +
		"\t-o  list only the specified columns in the output\n" +
		"\t-p  list process IDs and names associated with each service\n" +
		"\t-R  list only those services with the specified restarter\n" +
		"\t-s  sort output in ascending order by the specified column(s)\n" +
		"\t-S  sort output in descending order by the specified column(s)\n" +
		"\t-v  list verbose information appropriate to the type of output\n" +
		"\t-x  explain the status of services that might require maintenance,\n" +
		"\t    or explain the status of the specified service(s)\n" +
		"\t-z  from global zone, show services in a specified zone\n" +
		"\t-Z  from global zone, show services in all zones\n"
}
