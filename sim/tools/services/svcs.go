package services

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/tools/cli"
	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// svcsUsage is print_usage() of usr/src/cmd/svc/svcs/svcs.c.
const svcsUsage = "Usage: svcs [-aHpv] [-o col[,col ... ]] [-R restarter] [-sS col] [-Z | -z zone ]\n" +
	"            [<service> ...]\n" +
	"       svcs -d | -D [-Hpv] [-o col[,col ... ]] [-sS col] [-Z | -z zone ]\n" +
	"            [<service> ...]\n" +
	"       svcs [-l | -L] [-Z | -z zone] <service> ...\n" +
	"       svcs -x [-v] [-Z | -z zone] [<service> ...]\n" +
	"       svcs -?\n"

// svcs is one run of the command.
type svcs struct {
	tx                 *world.Tx
	mode               byte // 0, L, x
	all, bare, verbose bool
	zoneGiven          bool // -z: paths are the global zone's
	nextShown          bool // a column shows the next state: STATE has no asterisk
	columns            []svcsColumn
	lines              []svcsLine
	out                cli.Reply
}

// svcsRow is an instance that is to be shown.
type svcsRow struct {
	*smfHandle
	scf.Entity
	service     *world.Service
	state, next string
}

// svcsLine is a line of output with what it is sorted by.
type svcsLine struct {
	row  svcsRow
	text string
}

// Svcs is svcs(1).
func Svcs(tx *world.Tx, c cli.Call) cli.Reply {
	s := &svcs{tx: tx}
	options, operands := cli.Getopt(c.Args, "aHpvno:R:s:S:dDlL?xZz:", nil)
	if done := s.readMode(options); done != nil {
		return *done
	}
	zoneName, columnNames := "", ""
	for _, o := range options {
		switch o.Letter {
		case 'a':
			s.all = true
		case 'H':
			s.bare = true
		case 'v':
			s.verbose = true
		case 'o':
			columnNames = o.Value
		case 'z':
			if c.Zone != world.GlobalZone {
				return cli.Reply{}.Die("svcs", "svcs -z may only be used from the global zone\n")
			}
			zoneName = o.Value
		}
	}
	if s.mode == 'L' && len(operands) == 0 {
		return cli.Reply{Stderr: svcsUsage, Exit: 2}
	}
	if s.all && len(operands) > 0 {
		s.out.Warn("svcs", "-a ignored when used with arguments.\n")
	}
	if refusal := s.readColumns(columnNames); refusal != nil {
		return *refusal
	}
	s.zoneGiven = zoneName != ""
	if refusal := s.collect(c, zoneName, operands); refusal != nil {
		return *refusal
	}
	s.print()
	return s.out
}

// readMode finds the mode, and refuses options that do not go with it.
func (s *svcs) readMode(options []cli.Option) *cli.Reply {
	for _, o := range options {
		switch {
		case o.Letter == '?' && o.Bad == "":
			return refusal(cli.NotSimulated("svcs", "option -?"))
		case o.Bad != "" || o.Letter == 'n':
			return refusal(cli.Reply{Stderr: svcsUsage, Exit: 2})
		case strings.IndexByte("dDlpRsSZ", o.Letter) >= 0:
			return refusal(cli.NotSimulated("svcs", "option -%c", o.Letter))
		case o.Letter == 'L' || o.Letter == 'x':
			if s.mode != 0 {
				return refusal(cli.Reply{Stderr: svcsUsage, Exit: 2})
			}
			s.mode = o.Letter
		}
	}
	for _, o := range options {
		var bad bool
		switch o.Letter {
		case 'a':
			bad = s.mode != 0
		case 'H', 'o':
			bad = s.mode == 'x'
		}
		if bad {
			return refusal(cli.Reply{Stderr: svcsUsage, Exit: 2})
		}
	}
	return nil
}

// readColumns reads -o, or takes the columns that are shown without it.
func (s *svcs) readColumns(names string) *cli.Reply {
	if names == "" {
		names = "state,stime,fmri"
		if s.verbose {
			names = "state,nstate,stime,ctid,fmri"
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		if slices.Contains(svcsColumnsLeftOut(), strings.ToUpper(name)) {
			return refusal(cli.NotSimulated("svcs", "column %q", name))
		}
		column, ok := svcsColumnNamed(name)
		if !ok {
			return refusal(cli.Reply{}.Die("svcs", "Unknown column \"%s\".\n", name))
		}
		s.nextShown = s.nextShown || column == "NSTATE"
		s.columns = append(s.columns, column)
	}
	return nil
}

// collect gathers the lines of the zone.
func (s *svcs) collect(c cli.Call, zoneName string, operands []string) *cli.Reply {
	zone, known := smfZone(s.tx, c, zoneName)
	if !known {
		return refusal(cli.Reply{}.Die("svcs", "invalid zone '%s'\n", zoneName))
	}
	h, text := bindSMF(s.tx, zone)
	switch {
	case text == "":
		s.zoneRows(h, operands)
	case zoneName != "":
		return refusal(s.out.Die("svcs", "Could not bind to repository server for zone %s: %s\n", zone, text))
	default:
		return refusal(s.out.Die("svcs", "Could not bind to repository server: %s.  Exiting.\n", text))
	}
	return nil
}

// refusal is a reply that ends the command before it lists.
func refusal(r cli.Reply) *cli.Reply { return &r }

// zoneRows finds what one zone contributes, in the way of the mode.
func (s *svcs) zoneRows(h *smfHandle, operands []string) {
	found, complaints := h.walk(operands, false, noInstance)
	for _, text := range complaints {
		s.out.Warn("svcs", "%s", text)
		s.out.Exit = 1
	}
	if s.mode == 'x' {
		s.explain(h, found, len(operands) > 0)
		return
	}
	for _, m := range found {
		row := h.row(m.Entity)
		switch {
		case len(operands) == 0 && !s.shown(row):
		case s.mode == 'L':
			s.log(row)
		default:
			s.lines = append(s.lines, svcsLine{row, s.line(row)})
		}
	}
}

func (h *smfHandle) row(e scf.Entity) svcsRow {
	r := svcsRow{smfHandle: h, Entity: e, service: h.service(e)}
	r.state, r.next = smf.State(r.service, h.tx.Now)
	return r
}

// shown says whether an instance is listed without being named: enabled, for
// now or for good (list_instance).
func (s *svcs) shown(r svcsRow) bool {
	if s.mode != 0 || s.all {
		return true
	}
	if r.service == nil {
		return r.Instance.Groups.Value("general", "enabled") == "true"
	}
	return smf.Wanted(r.service) || r.service.Enabled
}

// dependenciesOf are those that walk_dependencies() walks: not exclude_all.
func dependenciesOf(r svcsRow) []world.Dependency {
	if r.service == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.service.Depends), func(d world.Dependency) bool { return d.Grouping == "exclude_all" })
}

// print writes the header and the sorted lines.
func (s *svcs) print() {
	if s.mode != 0 {
		return
	}
	if !s.bare {
		for i, column := range s.columns {
			end := " "
			if i == len(s.columns)-1 {
				end = "\n"
			}
			s.out.Stdout += fmt.Sprintf("%-*s%s", column.width(), string(column), end)
		}
	}
	slices.SortStableFunc(s.lines, func(a, b svcsLine) int {
		for _, by := range []svcsColumn{"STATE", "STIME", "FMRI"} {
			if order := by.compare(s, a.row, b.row); order != 0 {
				return order
			}
		}
		return 0
	})
	for _, l := range s.lines {
		s.out.Stdout += l.text
	}
}

// line is an instance's line.
func (s *svcs) line(r svcsRow) string {
	var b strings.Builder
	for _, column := range s.columns {
		b.WriteString(column.cell(s, r))
	}
	return b.String() + "\n"
}

// svcsTime is sprint_stime(): the time within a day, the date within a year,
// else the year.
func svcsTime(now, then time.Time) string {
	switch age := now.Sub(then); {
	case age < 24*time.Hour:
		return fmt.Sprintf("%2d:%02d:%02d", then.Hour(), then.Minute(), then.Second())
	case age < 12*30*24*time.Hour:
		return then.Format("Jan_02") + "  "
	}
	return then.Format("2006") + "    "
}

// log is -L.
func (s *svcs) log(r svcsRow) {
	if r.service == nil || r.service.Start.Exec == "" {
		s.out.Warn("svcs", "%s: no log file\n", r.FMRI())
		s.out.Exit = 1
		return
	}
	s.out.Stdout += s.logPath(r) + "\n"
}

// logPath is a log as the caller finds it: below the zone's root with -z and -Z.
func (s *svcs) logPath(r svcsRow) string {
	if !s.zoneGiven {
		return smf.LogPath(r.FMRI())
	}
	return path.Join(s.tx.ZoneRoot(r.zone), smf.LogPath(r.FMRI()))
}
