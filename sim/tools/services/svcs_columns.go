package services

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sledctl/sledctl/sim/world/smf"
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
	case "FMRI":
		return 50
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
	case "FMRI":
		return pad(r.FMRI())
	case "NSTATE":
		return pad(cmp.Or(r.next, "-"))
	case "STATE":
		return pad(cmp.Or(r.state, "-") + star)
	case "STIME":
		if r.state == "" {
			return pad("-")
		}
		return pad(svcsTime(s.tx.Now, smf.Since(r.service, s.tx.Now)))
	}
	return pad(r.zone)
}

func (r svcsRow) description() string {
	return strings.ReplaceAll(r.Entity.Service.Snapshot(r.Instance).Value("tm_common_name", "C"), "\n", " ")
}

// stateRank is sortkey_states(): what is more interesting comes later.
func stateRank(state string) int {
	switch state {
	case smf.Disabled:
		return 1
	case smf.Online:
		return 2
	case smf.Degraded:
		return 3
	case smf.Offline:
		return 4
	case smf.Maintenance:
		return 5
	case smf.Uninitialized:
		return 6
	}
	return 7
}

// compare orders two rows by a column that svcs sorts by of itself.
func (c svcsColumn) compare(s *svcs, a, b svcsRow) int {
	switch c {
	case "STATE":
		return cmp.Compare(stateRank(a.state), stateRank(b.state))
	case "STIME":
		return smf.Since(a.service, s.tx.Now).Compare(smf.Since(b.service, s.tx.Now))
	}
	return strings.Compare(c.cell(s, a), c.cell(s, b))
}

// svcsColumnsLeftOut are those of the real command that are not simulated.
func svcsColumnsLeftOut() []string {
	return []string{"DESC", "INST", "N", "NSTA", "S", "SCOPE", "SN", "STA", "SVC"}
}
