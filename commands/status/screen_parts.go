package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/sledctl/sledctl/commands/terminal"
	"github.com/sledctl/sledctl/sled/instance/record"
	"github.com/sledctl/sledctl/sled/status"
)

// footer says what the sled has and does.
func (s *screen) footer() {
	s.part("DISKS", disks(s.Disks), "POOLS  "+s.pools(s.Pools))
	s.part("LEDGER", s.ledger())
	if s.Memory != nil {
		phrases := []string{memory(*s.Memory), fmt.Sprintf("vCPUs %d", s.CPUs.VCPUs)}
		if s.Memory.Reserved > 0 {
			phrases = append(phrases, "reservoir "+terminal.FormatSize(s.Memory.Reserved))
		}
		s.part("MEMORY", s.oneLine(phrases)...)
	}
	if len(s.Problems) > 0 && s.Network.Link != "" {
		s.part("NETWORK", fmt.Sprintf("%s; %d control and %d guest VNICs", s.Network.Link, s.Network.Control, s.Network.Guest))
	}
	if s.Agent.Running || s.Agent.Nexus != "" {
		s.part("AGENT", s.agent())
	}
	if s.Doctor != nil {
		s.part("DOCTOR", s.doctor())
	}
	s.part("WORK", s.work()...)
	if len(s.Problems) > 0 && len(s.Last) > 0 {
		s.part("LAST", s.oneLine(s.last())...)
	}
}

// doctor is what doctor last found, and when.
func (s *screen) doctor() string {
	text := s.Doctor.Summary + ", " + terminal.Ago(s.Sled.Time, s.Doctor.Time)
	switch s.Doctor.Verdict {
	case "fail":
		text = s.style(terminal.Bad, text)
	case "warn":
		text = s.style(terminal.Warn, text)
	default:
		return text
	}
	return text + ": " + s.style(terminal.Strong, s.afar.Typed("sledctl doctor"))
}

// disks counts the disks by their kind.
func disks(all []status.Disk) string {
	present, total := map[string]int{}, map[string]int{}
	var kinds []string
	for _, d := range all {
		kind, _, _ := strings.Cut(d.Slot, ":")
		if total[kind] == 0 {
			kinds = append(kinds, kind)
		}
		total[kind]++
		if d.State != "absent" {
			present[kind]++
		}
	}
	slices.Sort(kinds)
	slices.Reverse(kinds) // u2 before m2
	var said []string
	for _, kind := range kinds {
		said = append(said, strings.TrimSpace(fmt.Sprintf("%s %d of %d", kind, present[kind], total[kind])))
	}
	if said == nil {
		return "none"
	}
	return strings.Join(said, ", ")
}

// pools counts the pools, and names the fullest.
func (s *screen) pools(all []status.Pool) string {
	if len(all) == 0 {
		return "none"
	}
	online := 0
	var fullest status.Pool
	for _, p := range all {
		if p.Works() {
			online++
		}
		if p.Percent() > fullest.Percent() {
			fullest = p
		}
	}
	text := fmt.Sprintf("%d of %d online", online, len(all))
	if fullest.Name != "" {
		text += fmt.Sprintf(", fullest %s %d%%", s.short(fullest.Name), fullest.Percent())
	}
	return text
}

func (s *screen) ledger() string {
	l := s.Ledger
	if len(l.Copies) == 0 {
		return "none"
	}
	text := fmt.Sprintf("%d of %d copies, epoch %d, seq %d", l.Sound(), len(l.Copies), l.Epoch, l.Seq)
	if l.Written != nil {
		text += ", last written " + terminal.Ago(s.Sled.Time, *l.Written)
	}
	return text
}

// memory is what guests have, with a bar that a serial console shows, too.
func memory(m status.Memory) string {
	share := 0.0
	if m.Limit > 0 {
		share = min(float64(m.Used)/float64(m.Limit), 1)
	}
	return fmt.Sprintf("%s of %s for guests %s %.0f%%", terminal.FormatSize(m.Used), terminal.FormatSize(m.Limit), terminal.Bar(share), share*100)
}

func (s *screen) agent() string {
	text := "not running"
	if s.Agent.Running {
		text = fmt.Sprintf("running, started %s (pid %d)", terminal.Ago(s.Sled.Time, *s.Agent.Since), s.Agent.PID)
	}
	if s.Agent.Nexus != "" {
		text += "; it notifies " + s.Agent.Nexus
	}
	return text
}

func (s *screen) work() []string {
	if len(s.Work) == 0 {
		return []string{"no operation is at work"}
	}
	var all []string
	for _, w := range s.Work {
		took := max(0, s.Sled.Time.Sub(w.Since)).Truncate(time.Second)
		by := fmt.Sprintf("(pid %d)", w.PID)
		if w.User != "" {
			by = fmt.Sprintf("(%s, pid %d)", w.User, w.PID)
		}
		all = append(all, fmt.Sprintf("%s, %v %s", strings.Join(doing(w), ", "), took, by))
	}
	return all
}

// doing is what an operation is about, and how far it has come: a migration by its phase, others
// by their step.
func doing(w status.Work) []string {
	verb := strings.TrimPrefix(w.Verb, "instance ")
	what := []string{w.Subject.Name + " " + verb}
	if w.Subject.Kind == "sled" || w.Subject.Name == "" { // the verb says what it is about
		what[0] = w.Verb
	}
	switch m := w.Migration; {
	case m != nil && m.Direction == record.Departing && verb == "migrate":
		what[0] += " to " + m.Sled
	case m != nil && m.Direction == record.Arriving:
		what[0] += " from " + m.Sled
	}
	switch {
	case w.Migration != nil && w.Migration.Phase != "":
		what = append(what, w.Migration.Phase)
	case w.Steps > 0:
		what = append(what, fmt.Sprintf("step %d/%d %s", w.At, w.Steps, w.Step))
	}
	return what
}

// oneLine is as many phrases as fit into one line, but one at least.
func (s *screen) oneLine(phrases []string) []string {
	n := 1
	for n < len(phrases) && column+ansi.StringWidth(strings.Join(phrases[:n+1], between)) <= s.width {
		n++
	}
	return phrases[:n]
}

func (s *screen) last() []string {
	var all []string
	for _, l := range s.Last {
		result := "ok"
		if l.Error != "" {
			result = "FAILED"
		}
		verb := strings.TrimPrefix(l.Verb, "instance ")
		all = append(all, strings.Join(strings.Fields(l.Start.In(s.zone).Format(time.TimeOnly)+" "+verb+" "+s.short(l.Subject.Name)+" "+result), " "))
	}
	return all
}
