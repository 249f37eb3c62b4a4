package status

import (
	"fmt"
	"strings"
)

// Line is a status in one line, for monitoring: the verdict, the codes of the problems
// with how many there are of each, and the counts.
func (s Status) Line() string {
	words := []string{s.Sled.Name, string(s.Verdict)}
	counts := map[string]int{}
	var codes []string
	for _, p := range s.Problems {
		if counts[p.Code] == 0 {
			codes = append(codes, p.Code)
		}
		counts[p.Code] += p.Weight()
	}
	for _, code := range codes {
		if counts[code] > 1 {
			code = fmt.Sprintf("%s=%d", code, counts[code])
		}
		words = append(words, code)
	}
	present := 0
	for _, d := range s.Disks {
		if d.State != "absent" {
			present++
		}
	}
	i := s.Instances
	return strings.Join(words, " ") + fmt.Sprintf(" | vms=%d up=%d wanted=%d failed=%d disks=%d/%d copies=%d/%d",
		i.Total, i.Up, i.WantedUp, i.ByState["failed"], present, len(s.Disks), s.Ledger.Sound(), len(s.Ledger.Copies))
}

// Weight is how many VMs a problem of VMs has; others count once.
func (p Problem) Weight() int {
	if p.Subject.Kind == "instances" {
		return p.Count
	}
	return 1
}
