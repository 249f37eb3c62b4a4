package tools

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/scf"
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
	tx                            *world.Tx
	mode                          byte // 0, d, D, l, L, x
	all, bare, processes, verbose bool
	everyZone                     bool
	zoneGiven                     bool // -z or -Z: paths are the global zone's
	nextShown                     bool // a column shows the next state: STATE has no asterisk
	columns                       []svcsColumn
	sorts                         []svcsSort
	restarter                     string
	lines                         []svcsLine
	out                           Reply
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

type svcsSort struct {
	by      svcsColumn
	reverse bool
}

// Svcs is svcs(1).
func Svcs(tx *world.Tx, c Call) Reply {
	s := &svcs{tx: tx}
	options, operands := getopt(c.Args, "aHpvno:R:s:S:dDlL?xZz:", nil)
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
		case 'p':
			s.processes = true
		case 'v':
			s.verbose = true
		case 'o':
			columnNames = o.Value
		case 'R':
			s.restarter = o.Value
		case 's', 'S':
			column, ok := svcsColumnNamed(o.Value)
			if !ok {
				return Reply{}.die("svcs", "Unrecognized sort column \"%s\".\n", o.Value)
			}
			s.sorts = append(s.sorts, svcsSort{column, o.Letter == 'S'})
		case 'z', 'Z':
			if c.Zone != world.GlobalZone {
				return Reply{}.die("svcs", "svcs -%c may only be used from the global zone\n", o.Letter)
			}
			if o.Letter == 'z' {
				zoneName = o.Value
			} else {
				s.everyZone = true
			}
		}
	}
	if s.everyZone && zoneName != "" || (s.mode == 'l' || s.mode == 'L') && len(operands) == 0 {
		return Reply{Stderr: svcsUsage, Exit: 2}
	}
	if s.all && len(operands) > 0 {
		s.out.warn("svcs", "-a ignored when used with arguments.\n")
	}
	if refusal := s.readColumns(columnNames); refusal != nil {
		return *refusal
	}
	s.zoneGiven = s.everyZone || zoneName != ""
	if refusal := s.collect(c, zoneName, operands); refusal != nil {
		return *refusal
	}
	s.print()
	return s.out
}

// readMode finds the mode, and refuses options that do not go with it.
func (s *svcs) readMode(options []option) *Reply {
	for _, o := range options {
		switch {
		case o.Letter == '?' && o.Bad == "":
			return &Reply{Stdout: svcsUsage + svcsHelp()}
		case o.Bad != "" || o.Letter == 'n':
			return &Reply{Stderr: svcsUsage, Exit: 2}
		case strings.IndexByte("dDlLx", o.Letter) >= 0:
			if s.mode != 0 {
				return &Reply{Stderr: svcsUsage, Exit: 2}
			}
			s.mode = o.Letter
		}
	}
	for _, o := range options {
		var bad bool
		switch o.Letter {
		case 'a', 'R', 's', 'S':
			bad = s.mode != 0
		case 'H', 'o':
			bad = s.mode == 'l' || s.mode == 'x'
		case 'p':
			bad = s.mode == 'x'
		}
		if bad {
			return &Reply{Stderr: svcsUsage, Exit: 2}
		}
	}
	return nil
}

// readColumns reads -o, or takes the columns that are shown without it.
func (s *svcs) readColumns(names string) *Reply {
	if names == "" {
		names = "state,stime,fmri"
		if s.verbose {
			names = "state,nstate,stime,ctid,fmri"
		}
		if s.everyZone {
			names = "zone," + names
		}
	}
	for name := range strings.SplitSeq(names, ",") {
		column, ok := svcsColumnNamed(name)
		if !ok {
			r := Reply{}.die("svcs", "Unknown column \"%s\".\n", name)
			return &r
		}
		switch column {
		case "N", "SN", "NSTA", "NSTATE":
			s.nextShown = true
		}
		s.columns = append(s.columns, column)
	}
	if len(s.sorts) == 0 {
		if s.everyZone {
			s.sorts = append(s.sorts, svcsSort{by: "ZONE"})
		}
		s.sorts = append(s.sorts, svcsSort{by: "STATE"}, svcsSort{by: "STIME"}, svcsSort{by: "FMRI"})
	}
	return nil
}

// collect gathers the lines of the zone or zones.
func (s *svcs) collect(c Call, zoneName string, operands []string) *Reply {
	zones := []string{c.Zone}
	switch {
	case s.everyZone:
		zones = kernelZones(s.tx)
	case zoneName != "":
		zone, known := smfZone(s.tx, c, zoneName)
		if !known {
			r := Reply{}.die("svcs", "invalid zone '%s'\n", zoneName)
			return &r
		}
		zones = []string{zone}
	}
	for _, zone := range zones {
		h, text := bindSMF(s.tx, zone)
		switch {
		case text == "":
			s.zoneRows(h, operands)
		case s.everyZone:
			s.out.warn("svcs", "Could not bind to repository server for zone %s: %s\n", zone, text)
		case zoneName != "":
			r := s.out.die("svcs", "Could not bind to repository server for zone %s: %s\n", zone, text)
			return &r
		default:
			r := s.out.die("svcs", "Could not bind to repository server: %s.  Exiting.\n", text)
			return &r
		}
	}
	return nil
}

// kernelZones are the zones that zone_list(2) names.
func kernelZones(tx *world.Tx) []string {
	zones := []string{world.GlobalZone}
	for _, z := range tx.State.Zones {
		if z.Kernel != nil {
			zones = append(zones, z.Name)
		}
	}
	return zones
}

// zoneRows finds what one zone contributes, in the way of the mode.
func (s *svcs) zoneRows(h *smfHandle, operands []string) {
	found, complaints := h.walk(operands, false, noInstance)
	for _, text := range complaints {
		if !s.everyZone { // with -Z a zone without a match is no failure
			s.out.warn("svcs", "%s", text)
			s.out.Exit = 1
		}
	}
	if s.mode == 'x' {
		s.explain(h, found, len(operands) > 0)
		return
	}
	seen := map[string]bool{}
	for _, m := range found {
		for _, row := range s.related(h, h.row(m.Entity)) {
			if seen[row.FMRI()] || len(operands) == 0 && !s.shown(row) {
				continue
			}
			seen[row.FMRI()] = true
			switch s.mode {
			case 'l':
				s.detail(row)
			case 'L':
				s.log(row)
			default:
				s.lines = append(s.lines, svcsLine{row, s.line(row)})
			}
		}
	}
}

func (h *smfHandle) row(e scf.Entity) svcsRow {
	r := svcsRow{smfHandle: h, Entity: e, service: h.service(e)}
	r.state, r.next = r.service.State(h.tx.Now)
	return r
}

// shown says whether an instance is listed without being named: enabled, for
// now or for good (list_instance).
func (s *svcs) shown(r svcsRow) bool {
	if s.mode != 0 || s.all {
		return true
	}
	if s.restarter != "" {
		own := cmp.Or(r.Entity.Service.Composed(r.Instance).Value("general", "restarter"), "svc:/system/svc/restarter:default")
		return own == s.restarter
	}
	if r.service == nil {
		return r.Instance.Groups.Value("general", "enabled") == "true"
	}
	return r.service.Wanted() || r.service.Enabled
}

// related is the instance itself; its dependencies with -d, its dependents
// with -D.
func (s *svcs) related(h *smfHandle, r svcsRow) []svcsRow {
	var out []svcsRow
	switch s.mode {
	case 'd':
		for _, d := range dependenciesOf(r) {
			for _, fmri := range d.FMRIs {
				for _, m := range h.Matches(fmri, false) {
					out = append(out, h.row(m.Entity))
				}
			}
		}
	case 'D':
		for _, m := range h.Matches("*", false) {
			other := h.row(m.Entity)
			if slices.ContainsFunc(dependenciesOf(other), func(d world.Dependency) bool {
				return slices.ContainsFunc(d.FMRIs, func(f string) bool { return f == r.FMRI() || f == r.Entity.Service.FMRI() })
			}) {
				out = append(out, other)
			}
		}
	default:
		return []svcsRow{r}
	}
	return out
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
	if s.mode == 'l' || s.mode == 'L' || s.mode == 'x' {
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
		for _, by := range s.sorts {
			order := by.by.compare(s, a.row, b.row)
			if by.reverse {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
	for _, l := range s.lines {
		s.out.Stdout += l.text
	}
}

// line is an instance's line, and with -p a line for each of its processes.
func (s *svcs) line(r svcsRow) string {
	var b strings.Builder
	for _, column := range s.columns {
		b.WriteString(column.cell(s, r))
	}
	b.WriteByte('\n')
	if s.processes {
		for _, p := range processesOf(r) {
			fmt.Fprintf(&b, "%15s%-8s %8d %s\n", "", svcsTime(s.tx.Now, p.Started), p.PID, path.Base(p.Argv[0]))
		}
	}
	return b.String()
}

func processesOf(r svcsRow) []*world.Process {
	var out []*world.Process
	for _, p := range r.tx.State.Processes {
		if p.Zone == r.zone && p.FMRI == r.FMRI() {
			out = append(out, p)
		}
	}
	return out
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
		s.out.warn("svcs", "%s: no log file\n", r.FMRI())
		s.out.Exit = 1
		return
	}
	s.out.Stdout += s.logPath(r) + "\n"
}

// logPath is a log as the caller finds it: below the zone's root with -z and -Z.
func (s *svcs) logPath(r svcsRow) string {
	if !s.zoneGiven {
		return world.LogPath(r.FMRI())
	}
	return path.Join(s.tx.ZoneRoot(r.zone), world.LogPath(r.FMRI()))
}
