package services

import (
	"cmp"
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

// svcs is one run of the command.
type svcs struct {
	*smfHandle
	zoneGiven bool // -z: paths are the global zone's
	columns   []string
	out       cli.Reply
}

// svcsRow is an instance that is to be shown.
type svcsRow struct {
	scf.Entity
	service     *world.Service
	state, next string
}

// Svcs is svcs(1), of which the list is simulated, and -L and -x
// (usr/src/cmd/svc/svcs/svcs.c).
func Svcs(tx *world.Tx, c cli.Call) cli.Reply {
	s := &svcs{}
	options, operands := cli.Getopt(c.Args, "aHo:Lxz:", nil)
	given, zoneName, names := "", "", "state,stime,fmri"
	for _, o := range options {
		switch o.Letter {
		case 'o':
			names = o.Value
		case 'z':
			zoneName = o.Value
		case ':', '?':
			panic(world.Unsimulated{What: "option -" + o.Bad})
		default:
			given += string(o.Letter)
		}
	}
	s.readColumns(names)
	list := strings.Trim(given, "aH") == ""
	if !list && given != "L" && given != "x" || given == "L" && len(operands) == 0 {
		panic(world.Unsimulated{})
	}
	zone, refused := smfZone(tx, c, zoneName)
	if refused != nil {
		return *refused
	}
	s.zoneGiven = zoneName != ""
	if s.smfHandle = bindSMF(tx, zone); s.smfHandle == nil {
		if s.zoneGiven {
			return s.out.Die("svcs", "Could not bind to repository server for zone %s: %s\n", zone, scfNoServer)
		}
		return s.out.Die("svcs", "Could not bind to repository server: %s.  Exiting.\n", scfNoServer)
	}
	found, complaints := s.walk("svcs", operands, noInstance)
	if s.out = complaints; len(operands) == 0 {
		found = s.Entities()
	}
	rows := make([]svcsRow, len(found))
	for n, e := range found {
		rows[n] = s.row(e)
	}
	switch {
	case given == "L":
		for _, r := range rows {
			s.out.Stdout += s.logPath(r) + "\n"
		}
	case given == "x":
		s.explain(rows, len(operands) > 0)
	default:
		all := len(operands) > 0 || strings.Contains(given, "a")
		s.list(slices.DeleteFunc(rows, func(r svcsRow) bool { return !all && !r.enabled() }), !strings.Contains(given, "H"))
	}
	return s.out
}

func (h *smfHandle) row(e scf.Entity) svcsRow {
	r := svcsRow{Entity: e, service: h.service(e)}
	r.state, r.next = smf.State(r.service, h.tx.Now)
	return r
}

// enabled says whether an instance is listed without being named: enabled, for
// now or for good (list_instance).
func (r svcsRow) enabled() bool {
	return r.Instance.Groups.Value("general", "enabled") == "true" || r.service != nil && smf.Wanted(r.service)
}

// readColumns reads -o. The columns are those that svcs shows of itself.
func (s *svcs) readColumns(names string) {
	s.columns = strings.Split(strings.ToUpper(names), ",")
	for _, c := range s.columns {
		if width(c) == 0 {
			panic(world.Unsimulated{What: fmt.Sprintf("column %q", strings.ToLower(c))})
		}
	}
}

// width is how wide a column is at least (the table columns in svcs.c).
func width(column string) int { return map[string]int{"STATE": 14, "STIME": 8, "FMRI": 50}[column] }

// list writes the header and the lines, sorted by STATE, STIME and FMRI.
//
// Guess svcs-header-is-padded: the header of `svcs` is padded as its cells are.
// Check: `svcs -o state,fmri | od -c`
func (s *svcs) list(rows []svcsRow, header bool) {
	slices.SortStableFunc(rows, func(a, b svcsRow) int {
		return cmp.Or(cmp.Compare(stateRank(a.state), stateRank(b.state)),
			smf.Since(a.service, s.tx.Now).Compare(smf.Since(b.service, s.tx.Now)), strings.Compare(a.FMRI(), b.FMRI()))
	})
	if header {
		for i, c := range s.columns {
			end := map[bool]string{true: "\n", false: " "}[i == len(s.columns)-1]
			s.out.Stdout += fmt.Sprintf("%-*s%s", width(c), c, end)
		}
	}
	for _, r := range rows {
		for _, c := range s.columns {
			s.out.Stdout += fmt.Sprintf("%-*s ", width(c), s.cell(c, r))
		}
		s.out.Stdout += "\n"
	}
}

// cell is a column's text for an instance.
func (s *svcs) cell(column string, r svcsRow) string {
	switch {
	case column == "FMRI":
		return r.FMRI()
	case r.state == "":
		return "-"
	case column == "STIME":
		return svcsTime(s.tx.Now, smf.Since(r.service, s.tx.Now))
	case r.next != "":
		return r.state + "*"
	}
	return r.state
}

// stateRank is sortkey_states(): what is more interesting comes later.
func stateRank(state string) int {
	states := []string{smf.Disabled, smf.Online, smf.Offline, smf.Maintenance, smf.Uninitialized}
	if rank := slices.Index(states, state); rank >= 0 {
		return rank
	}
	return len(states)
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

// logPath is an instance's log as the caller finds it: below the zone's root with -z.
func (s *svcs) logPath(r svcsRow) string {
	if r.service == nil || r.service.Start.Exec == "" {
		panic(world.Unsimulated{What: r.FMRI() + " has no log"})
	}
	if !s.zoneGiven {
		return smf.LogPath(r.FMRI())
	}
	return path.Join(s.tx.ZoneRoot(s.zone), smf.LogPath(r.FMRI()))
}
