package services

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sledctl/sledctl/sim/world/scf"
	"github.com/sledctl/sledctl/sim/world/smf"
)

// stateOf is what stands for the state of a dependency.
func (r svcsRow) stateOf(fmri string) string {
	if strings.HasPrefix(fmri, "file:") {
		return "-"
	}
	matches := r.Matches(fmri, false)
	switch len(matches) {
	case 0:
		return "absent"
	case 1:
		return cmp.Or(r.row(matches[0].Entity).state, "-")
	}
	return "multiple"
}

// cTime is a time as ctime(3C) writes it.
func cTime(t time.Time) string { return t.Format("Mon Jan _2 15:04:05 2006") }

// explain is -x: why services that should run do not, or stand in others' way
// (usr/src/cmd/svc/svcs/explain.c).
func (s *svcs) explain(h *smfHandle, found []scf.Match, named bool) {
	for _, m := range found {
		r := h.row(m.Entity)
		if r.service == nil {
			s.out.Stderr += fmt.Sprintf("%s has no \"restarter\" property group; ignoring.\n", r.FMRI())
			continue
		}
		waiting := s.waitingFor(h, r)
		trouble := r.state == smf.Maintenance || r.state == smf.Offline && r.next == "" && s.isRoot(h, r) ||
			r.state == smf.Disabled && len(waiting) > 0
		if named || trouble {
			s.explanation(r, waiting)
		}
	}
}

// isRoot says whether an offline instance is itself the reason: none of its
// dependencies will be explained instead.
func (s *svcs) isRoot(h *smfHandle, r svcsRow) bool {
	for _, d := range dependenciesOf(r) {
		if d.Grouping == "optional_all" {
			continue
		}
		for _, fmri := range d.FMRIs {
			for _, m := range h.Matches(fmri, false) {
				if on := h.row(m.Entity); on.state != smf.Online && on.state != smf.Degraded {
					return false
				}
			}
		}
	}
	return true
}

// waitingFor are the enabled instances that do not run because of this one.
func (s *svcs) waitingFor(h *smfHandle, r svcsRow) []string {
	if r.state == smf.Online || r.state == smf.Degraded {
		return nil
	}
	blocked := map[string]bool{r.FMRI(): true}
	all := h.Matches("*", false)
	for again := true; again; {
		again = false
		for _, m := range all {
			other := h.row(m.Entity)
			if blocked[other.FMRI()] || other.state != smf.Offline {
				continue
			}
			for _, d := range dependenciesOf(other) {
				if d.Grouping == "optional_all" || blocked[other.FMRI()] {
					continue
				}
				for _, fmri := range d.FMRIs {
					for _, on := range h.Matches(fmri, false) {
						if blocked[on.FMRI()] {
							blocked[other.FMRI()], again = true, true
						}
					}
				}
			}
		}
	}
	delete(blocked, r.FMRI())
	var out []string
	for fmri := range blocked {
		out = append(out, fmri)
	}
	slices.Sort(out)
	return out
}

func (s *svcs) explanation(r svcsRow, waiting []string) {
	out := &s.out.Stdout
	if *out != "" {
		*out += "\n"
	}
	*out += r.FMRI() + " (" + cmp.Or(r.description(), "?") + ")\n"
	if s.zoneGiven {
		*out += "  Zone: " + r.zone + "\n"
	}
	*out += " State: " + r.state + " since " + cTime(smf.Since(r.service, s.tx.Now)) + "\n"
	if r.state != smf.Online {
		reason, code := s.reason(r)
		*out += "Reason: " + reason + "\n"
		*out += "   See: http://illumos.org/msg/SMF-8000-" + code + "\n"
	}
	if r.service.Start.Exec != "" {
		*out += "   See: " + s.logPath(r) + "\n"
	}
	switch n := len(waiting); {
	case n == 0:
		*out += "Impact: This service is not running.\n"
		if r.state == smf.Online {
			*out = strings.TrimSuffix(*out, "Impact: This service is not running.\n") + "Impact: None.\n"
		}
	case s.verbose:
		*out += fmt.Sprintf("Impact: %d dependent service%s not running:\n", n, plural(n))
		for _, fmri := range waiting {
			*out += "        " + fmri + "\n"
		}
	default:
		*out += fmt.Sprintf("Impact: %d dependent service%s not running.  (Use -v for list.)\n", n, plural(n))
	}
}

func plural(n int) string {
	if n == 1 {
		return " is"
	}
	return "s are"
}

// reason is the text and message code of an explanation.
func (s *svcs) reason(r svcsRow) (text, code string) {
	exit := r.service.Wait >> 8
	switch {
	case r.state == smf.Disabled && r.service.Temporary != nil:
		return "Temporarily disabled by an administrator.", "1S"
	case r.state == smf.Disabled:
		return "Disabled by an administrator.", "05"
	case r.state == smf.Uninitialized:
		return "Restarter svc:/system/svc/restarter:default has not initialized service state.", "4D"
	case r.next != "":
		return "Start method is running.", "C4"
	case r.service.Auxiliary == "administrative_request":
		return "Maintenance requested by an administrator.", "63"
	case r.service.Auxiliary == "restarting_too_quickly":
		return "Restarting too quickly.", "L5"
	case r.service.Auxiliary == "fault_threshold_reached":
		return fmt.Sprintf("Start method failed repeatedly, last exited with status %d.", exit), "KS"
	case r.state == smf.Maintenance && exit == 95:
		return "Start method exited with $SMF_EXIT_ERR_FATAL.", "KS"
	case r.state == smf.Maintenance && exit == 96:
		return "Start method exited with $SMF_EXIT_ERR_CONFIG.", "KS"
	case r.state == smf.Maintenance:
		return fmt.Sprintf("Start method exited with status %d.", exit), "KS"
	}
	for _, d := range dependenciesOf(r) {
		for _, fmri := range d.FMRIs {
			switch state := r.stateOf(fmri); {
			case d.Grouping == "optional_all" || state == smf.Online || state == smf.Degraded:
			case state == "absent":
				return "Dependency " + fmri + " is absent.", "E2"
			default:
				return fmt.Sprintf("Service %s is %s.", fmri, state), "GE"
			}
		}
	}
	return "Unknown.", "AR"
}
