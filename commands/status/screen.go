package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/cli"
	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/status"
)

// screen is a status as people see it. It is pure: the width, the height and the
// colours go in.
type screen struct {
	status.Status
	width int
	lines int // that it may have; 0: as many as it takes
	style func(terminal.Style, string) string
	zone  *time.Location // of the clock times
	afar  cli.Afar       // how the screen's own commands are typed
	out   []string
}

// short shortens the names of pools in a text, where that is unambiguous.
func (s *screen) short(text string) string {
	var known []string
	for _, p := range s.Pools {
		known = append(known, p.Name)
	}
	return terminal.ShortPools(known)(text)
}

// What the smallest terminal shows above the next prompt, and from which width on a problem
// and its command stand side by side.
const (
	lines = 23
	wide  = 120
)

// text is the screen, a line after the other.
func (s screen) text() string {
	s.header()
	foot := screen{Status: s.Status, width: s.width, style: s.style, zone: s.zone, afar: s.afar}
	foot.footer()
	if len(s.Problems) > 0 {
		s.out = append(s.out, "")
		s.problems(s.lines - len(s.out) - len(foot.out) - 1)
		s.out = append(s.out, "")
	}
	return strings.Join(append(s.out, foot.out...), "\n") + "\n"
}

// list is the problems alone, all of them.
func (s screen) list() string {
	s.lines = 0
	s.header()
	if len(s.Problems) > 0 {
		s.out = append(s.out, "")
		s.problems(0)
	}
	return strings.Join(s.out, "\n") + "\n"
}

func verdictStyle(v status.Verdict) terminal.Style {
	switch v {
	case status.IsOK:
		return terminal.Good
	case status.IsAttention:
		return terminal.Warn
	}
	return terminal.Bad
}

// header says how the sled is, and its VMs.
func (s *screen) header() {
	clock := s.clock()
	// What is named does not change with the age of the sled: a watch would flicker.
	room := s.width - ansi.StringWidth(s.Sled.Name) - len(s.Verdict) - max(len(clock), len("up 365d")) - 6
	said := terminal.Wrapped(summary(s.Problems, max(room, 20)), max(room, 20))
	first := ""
	if len(said) > 0 {
		first = said[0]
	}
	line := s.Sled.Name + "  " + string(s.Verdict) + "  " + first
	pad := strings.Repeat(" ", max(s.width-ansi.StringWidth(line)-len(clock), 2))
	s.out = append(s.out, s.style(terminal.Strong, s.Sled.Name)+"  "+s.style(verdictStyle(s.Verdict), string(s.Verdict))+"  "+first+pad+s.style(terminal.Faint, clock))
	s.part("VMs", vms(s.Instances))
	if k := s.Sled.Keeper; k != "" && k != record.Operator {
		s.part("Keeper", k.Text()+" places VMs here")
	}
	for _, why := range s.Unknown {
		s.part("UNKNOWN", s.short(why))
	}
}

// clock is how long the sled is up, and where there is room which system it has and when
// it was looked at.
func (s *screen) clock() string {
	var said []string
	if s.width >= wide && s.Sled.Release != "" {
		said = append(said, s.Sled.Release)
	}
	if s.Sled.Booted != nil {
		said = append(said, "up "+terminal.Age(s.Sled.Time, *s.Sled.Booted))
	}
	if s.width >= wide || s.Sled.Booted == nil {
		said = append(said, s.Sled.Time.In(s.zone).Format(time.TimeOnly))
	}
	return strings.Join(said, ", ")
}

// summary counts the problems by what they are, the worst first, as far as the room goes.
func summary(problems []status.Problem, room int) string {
	total := ""
	if n := len(problems); n > 1 {
		total = fmt.Sprintf("%d problems", n)
	}
	counts := map[string]int{}
	var order []string
	for _, p := range problems {
		if counts[p.Code] == 0 {
			order = append(order, p.Code)
		}
		counts[p.Code] += p.Weight()
	}
	said := ""
	for _, code := range order {
		more := phrase(code, counts[code])
		if said != "" {
			more = said + ", " + more
		}
		if len(more)+len("; ")+len(total) > room {
			break
		}
		said = more
	}
	return strings.Join(slices.DeleteFunc([]string{said, total}, func(s string) bool { return s == "" }), "; ")
}

// phrase is a code for people.
func phrase(code string, n int) string {
	one := map[string][2]string{
		"vm-failed": {"VM failed", "VMs failed"}, "vm-absent": {"VM absent", "VMs absent"}, "vm-unknown": {"VM unknown", "VMs unknown"},
		"vm-changed": {"VM changed", "VMs changed"}, "fault-armed": {"fault armed", "faults armed"}, "disk-blank": {"disk blank", "disks blank"}, "vm-unrecorded": {"unrecorded zone", "unrecorded zones"}, "base-invalid": {"base invalid", "bases invalid"}, "volume-missing": {"volume missing", "volumes missing"}, "volume-differs": {"volume differs", "volumes differ"}, "image-missing": {"image missing", "images missing"}, "disk-absent": {"disk absent", "disks absent"}, "pool-unavail": {"pool unavailable", "pools unavailable"},
		"pool-full": {"pool full", "pools full"}, "pool-locked": {"pool locked", "pools locked"}, "ledger-copy-missing": {"copy of the ledger missing", "copies of the ledger missing"},
		"operation-died": {"operation killed", "operations killed"}, "migration-stuck": {"migration stuck", "migrations stuck"},
	}[code]
	alone := map[string]string{"ledger-unsound": "ledger unsound", "ledger-unconfirmed": "ledger unconfirmed", "sled-unprepared": "not prepared",
		"memory-full": "memory full", "key-development": "public key", "dataset-differs": "storage differs", "agent-down": "agent down"}[code]
	switch {
	case alone != "":
		return alone
	case one[0] == "":
		return code
	case n == 1:
		return "1 " + one[0]
	}
	return fmt.Sprintf("%d %s", n, one[1])
}

// vms counts the VMs in words: those that are up first.
func vms(i status.Instances) string {
	if i.Total == 0 {
		return "none"
	}
	var running, rest []string
	for _, state := range cli.StatesOf(i.ByState) {
		said := fmt.Sprintf("%d %s", i.ByState[state], state)
		if slices.Contains([]string{"running", "migrating", "rebooting"}, state) {
			running = append(running, said)
		} else {
			rest = append(rest, said)
		}
	}
	text := fmt.Sprintf("%d of %d wanted are up", i.Up, i.WantedUp)
	both := slices.DeleteFunc([]string{strings.Join(running, ", "), strings.Join(rest, ", ")}, func(s string) bool { return s == "" })
	return text + ": " + strings.Join(both, "; ")
}

// What stands before the text of a part, in columns, and between two phrases.
const (
	column  = 9
	between = "   "
)

// part is a line with a label, and phrases behind it, as many in a line as fit.
func (s *screen) part(label string, phrases ...string) {
	var rows []string
	for _, phrase := range phrases {
		if last := len(rows) - 1; last >= 0 && ansi.StringWidth(rows[last]+between+phrase) <= s.width-column {
			rows[last] += between + phrase
			continue
		}
		rows = append(rows, terminal.Wrapped(phrase, s.width-column)...)
	}
	for i, line := range rows {
		before := strings.Repeat(" ", column)
		if i == 0 {
			before = s.style(terminal.Strong, label) + strings.Repeat(" ", column-len(label))
		}
		s.out = append(s.out, before+line)
	}
}
