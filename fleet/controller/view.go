package controller

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sledctl/sledctl/fleet/fence"
)

// view is what the controller knows of its store and of the sleds. The loop of beats writes
// it, the reconcilers read it.
type view struct {
	mu        sync.Mutex
	term      string
	last      fence.Beat // that this controller has written
	restored  bool       // this controller has found its own beat missing
	uncounted []string   // see fence.Census
	read      bool       // it was read once
	silence   map[string]fence.Silence
	renewed   map[string]bool // since the read before
	now       time.Duration
	gap       time.Duration            // how far apart two reads may be for the time between them to count
	seen      map[string]time.Duration // when it was first found that a pod is deleted, or that a source is emptied
	runs      map[string]Found         // by VM: the highest generation that a sled reports
	reports   map[string]Report        // by sled
	heard     time.Time                // when the leases were last read
}

// silent is for how long a sled has not renewed its lease.
func (v *view) silent(sled string) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.silence[sled].Counted
}

// evidence is what is known about a run on a sled. Revoked names its pod, if that is
// being deleted: silence counts from when that was first seen.
func (v *view) evidence(sled, revoked string) fence.Evidence {
	v.mu.Lock()
	defer v.mu.Unlock()
	e := fence.Evidence{Uncounted: v.uncounted, Silent: v.silence[sled].Counted}
	if revoked != "" {
		e.Revoked, e.Silent = true, min(e.Silent, v.since(revoked))
	}
	if !v.read {
		e.Uncounted = []string{"every sled"}
	}
	return e
}

// since is for how long something is known to be so that is named, and was first asked about here.
func (v *view) since(what string) time.Duration {
	if _, seen := v.seen[what]; !seen {
		if v.seen == nil {
			v.seen = map[string]time.Duration{}
		}
		v.seen[what] = v.now + v.gap // the loop may have read before it was so
	}
	return max(0, v.now-v.seen[what])
}

// heardOf are the sleds that were silent for so long, and the runs that are reported, by VM. The
// latter is not to be changed.
func (v *view) heardOf(fence time.Duration) (silent map[string]bool, runs map[string]Found) {
	v.mu.Lock()
	defer v.mu.Unlock()
	silent = map[string]bool{}
	for sled, is := range v.silence {
		if is.Counted >= fence {
			silent[sled] = true
		}
	}
	return silent, v.runs
}

// emptied is evidence about the target of a move whose source has just reported that it has the
// VM no longer: what the target's lease was silent for before that proves nothing.
func (v *view) emptied(e fence.Evidence, move string) fence.Evidence {
	v.mu.Lock()
	defer v.mu.Unlock()
	e.Silent = min(e.Silent, v.since(move))
	return e
}

// reported is what a sled reports to run.
func (v *view) reported(sled string) map[string]Found {
	v.mu.Lock()
	defer v.mu.Unlock()
	return maps.Clone(v.reports[sled].Runs)
}

func (v *view) found(vm string) Found {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.runs[vm]
}

// learn takes in what the sleds have reported and answered.
func (v *view) learn(reports map[string]Report) {
	answers := make(map[string]fence.Answer, len(reports))
	runs := map[string]Found{}
	for _, sled := range slices.Sorted(maps.Keys(reports)) {
		answers[sled] = reports[sled].Answer
		for vm, found := range reports[sled].Runs {
			if found.Sled = sled; found.Generation > runs[vm].Generation {
				runs[vm] = found
			}
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.runs, v.reports, v.read = runs, reports, true
	v.uncounted = fence.Census(v.term, v.restored, answers)
}

// listen takes in the renewals of the sleds' leases, as read from the API server at now.
func (v *view) listen(now time.Duration, renewals map[string]string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next, renewed := make(map[string]fence.Silence, len(renewals)), make(map[string]bool, len(renewals))
	for sled, renewal := range renewals {
		before, known := v.silence[sled]
		next[sled] = before.Read(now, renewal, v.gap)
		renewed[sled] = known && before.Renewal != renewal
	}
	v.renewed = renewed
	v.silence, v.now, v.heard = next, now, time.Now()
}

// renews reports whether a sled has renewed its lease since the controller read it before.
func (v *view) renews(sled string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.renewed[sled]
}

// gaps is how many beats two reads may be apart for the time between them to count.
const gaps = 5

// Report is what a sled has written on its Node.
type Report struct {
	Answer fence.Answer
	Runs   map[string]Found // by VM
	Aside  bool             // it is cordoned, or ends were proven by its silence: that it is silent says nothing about the network
}

// parseRuns reads VM=GENERATION,VM=GENERATION; VM>GENERATION is one that comes. What is neither is
// left out.
func parseRuns(text string) map[string]Found {
	out := map[string]Found{}
	for part := range strings.SplitSeq(text, ",") {
		at := strings.IndexAny(part, "=>")
		if at < 0 {
			continue
		}
		if generation, err := strconv.ParseInt(part[at+1:], 10, 64); err == nil && generation > 0 {
			out[part[:at]] = Found{Generation: generation, Coming: part[at] == '>'}
		}
	}
	return out
}
