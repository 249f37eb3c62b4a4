package services

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	"github.com/sledctl/sledctl/sim/world"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// explain is -x: why services that should run do not, or stand in others' way
// (usr/src/cmd/svc/svcs/explain.c). An instance that waits for what no instance
// of the zone is, or for itself, is not simulated.
func (s *svcs) explain(rows []svcsRow, named bool) {
	told := map[string]bool{}
	for _, r := range rows {
		if r.service == nil {
			s.out.Stderr += fmt.Sprintf("%s has no \"restarter\" property group; ignoring.\n", r.FMRI())
			continue
		}
		waiting := s.waitingFor(r)
		maps.Copy(told, waiting)
		if named || r.state == smf.Maintenance || r.state == smf.Disabled && len(waiting) > 0 {
			s.explanation(r, len(waiting))
		}
	}
	for _, r := range rows {
		if r.state == smf.Offline && r.next == "" && !named && !told[r.FMRI()] {
			panic(world.Unsimulated{What: "why " + r.FMRI() + " is offline"})
		}
	}
}

// waitingFor are the enabled instances that do not run because of this one.
func (s *svcs) waitingFor(r svcsRow) map[string]bool {
	waiting := map[string]bool{}
	if r.state == smf.Online || r.state == smf.Offline && r.next == "" {
		return waiting
	}
	blockers := []string{r.FMRI()}
	for len(blockers) > 0 {
		blocker := blockers[0]
		blockers = blockers[1:]
		for _, e := range s.Entities() {
			fmri := e.FMRI()
			if other := s.row(e); other.state == smf.Offline && !waiting[fmri] && smf.DependsOn(other.service, blocker) {
				waiting[fmri] = true
				blockers = append(blockers, fmri)
			}
		}
	}
	return waiting
}

func (s *svcs) explanation(r svcsRow, waiting int) {
	out := &s.out.Stdout
	if *out != "" {
		*out += "\n"
	}
	name := strings.ReplaceAll(r.Service.Snapshot(r.Instance).Value("tm_common_name", "C"), "\n", " ")
	*out += r.FMRI() + " (" + cmp.Or(name, "?") + ")\n"
	if s.zoneGiven {
		*out += "  Zone: " + s.zone + "\n"
	}
	*out += " State: " + r.state + " since " + smf.Since(r.service, s.tx.Now).Format("Mon Jan _2 15:04:05 2006") + "\n" // ctime(3C)
	if r.state != smf.Online {
		reason, code := r.reason()
		*out += "Reason: " + reason + "\n   See: http://illumos.org/msg/SMF-8000-" + code + "\n"
	}
	if r.service.Start.Exec != "" {
		*out += "   See: " + s.logPath(r) + "\n"
	}
	impact := fmt.Sprintf("%d dependent services are not running.  (Use -v for list.)", waiting)
	switch {
	case r.state == smf.Online:
		impact = "None."
	case waiting == 0:
		impact = "This service is not running."
	case waiting == 1:
		impact = "1 dependent service is not running.  (Use -v for list.)"
	}
	*out += "Impact: " + impact + "\n"
}

// reason is the text and message code of an explanation.
func (r svcsRow) reason() (text, code string) {
	exit := r.service.Wait >> 8
	switch {
	case r.state == smf.Disabled && r.service.Temporary != nil:
		return "Temporarily disabled by an administrator.", "1S"
	case r.state == smf.Disabled:
		return "Disabled by an administrator.", "05"
	case r.next != "":
		return "Start method is running.", "C4"
	case r.state != smf.Maintenance:
		panic(world.Unsimulated{What: r.FMRI() + " waits for others"})
	}
	switch r.service.Auxiliary {
	case "restarting_too_quickly":
		return "Restarting too quickly.", "L5"
	case "fault_threshold_reached":
		return fmt.Sprintf("Start method failed repeatedly, last exited with status %d.", exit), "KS"
	}
	why := map[int]string{95: "$SMF_EXIT_ERR_FATAL", 96: "$SMF_EXIT_ERR_CONFIG"}[exit]
	return "Start method exited with " + cmp.Or(why, fmt.Sprintf("status %d", exit)) + ".", "KS"
}
