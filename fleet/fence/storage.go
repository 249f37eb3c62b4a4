package fence

import (
	"fmt"
	"slices"
)

// byStorage has the next generation start once the sled was silent for as long as a lease takes.
// The end of the run is not proven by that: it may go on, and cannot write once its volumes are
// opened with the higher generation. How long the sled was silent makes that no safer; it keeps a
// VM from being moved for a short outage, as the brake does for one that is the network's.
func byStorage(r Run, e Evidence) Verdict {
	if err := r.Terms.Check(); err != nil {
		return Verdict{Reason: err.Error()}
	}
	if left := r.Terms.Wait() - e.Silent; left > 0 {
		return Verdict{Reason: fmt.Sprintf("sled %s has to be silent for %v longer", r.Sled, left), Wait: left}
	}
	if e.Braked != "" {
		return Verdict{Reason: fmt.Sprintf("the volumes of generation %d are not taken over from sled %s now: %s", r.Generation, r.Sled, e.Braked)}
	}
	return Verdict{Proof: Volumes, Reason: fmt.Sprintf("sled %s was silent for %v, and generation %d can no longer write once the next one has opened its volumes", r.Sled, r.Terms.Wait(), r.Generation)}
}

// Missing is a volume that a run may write to, and that the next generation would not open; empty:
// there is none. Who does not open all of them takes over only some.
func Missing(run, next []string) string {
	for _, volume := range run {
		if !slices.Contains(next, volume) {
			return volume
		}
	}
	return ""
}
