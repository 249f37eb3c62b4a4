package controller

import (
	"fmt"
	"time"

	"github.com/sledctl/sledctl/fleet/fence"
)

// Move is what is known of a move that is under way: generation G of the VM is on its source,
// and the next one is claimed on a target.
type Move struct {
	Generation int64         // that comes to the target
	Wanted     bool          // the VM is still wanted to run, and its migration has not been deleted
	Pending    time.Duration // for how long it was raised
}

// Target is the pod of the generation that comes; nil: there is none.
type Target struct {
	Pod
	Arrived bool   // its sled reports that it has come
	Message string // what its sled says about its end
}

// Acts of DecideMove.
const (
	Arrive Act = "arrive"  // write down that the VM is on its target, and so has ended on its source
	GiveUp Act = "give-up" // write down that the generation that was to come has ended: the VM is where it was
	Cancel Act = "cancel"  // delete the pod of the target, if it still has no sled
)

// maxPending is how long a generation that comes may be without a sled.
const maxPending = 30 * time.Second

// DecideMove says what to do about a move. The source is the pod of the generation that leaves,
// run and evidence are about the one that comes.
//
// The VM is on one of the two sleds, and only what they report says on which: fence.DecideComing.
// It is given up for another reason only before the generation that comes has a sled.
func DecideMove(m Move, source *Pod, target *Target, run fence.Run, e fence.Evidence) Step {
	gone := source == nil || source.Ended
	switch {
	case target == nil:
		return unclaimed(m, gone, e)
	case target.Sled == "" && !target.Ended:
		return unplaced(m, gone, target)
	}
	came, v := fence.DecideComing(fence.Coming{Run: run, Came: target.Arrived, Stayed: target.Ended, Emptied: gone}, e)
	switch {
	case came:
		return Step{Act: Arrive, Proof: fence.Confirmed, Reason: v.Reason}
	case v.Proven() && target.Ended:
		return Step{Act: GiveUp, Proof: v.Proof, Reason: fmt.Sprintf("sled %s: %s", target.Sled, target.Message)}
	case !target.Silent:
		return Step{Act: Nothing}
	case v.Proven():
		return Step{Act: GiveUp, Proof: v.Proof, Reason: v.Reason}
	case v.Revoke && !target.Deleting:
		return Step{Act: Evict, Reason: v.Reason}
	case v.Power:
		return Step{Act: PowerOff, Reason: v.Reason}
	}
	return Step{Act: Wait, Reason: v.Reason}
}

// unclaimed is DecideMove where the generation that comes has no pod.
func unclaimed(m Move, gone bool, e fence.Evidence) Step {
	counted := fence.Decide(fence.Run{}, fence.Evidence{Uncounted: e.Uncounted})
	switch {
	case !counted.Proven():
		return Step{Act: Wait, Reason: counted.Reason}
	case !m.Wanted || gone:
		return Step{Act: GiveUp, Proof: fence.NeverRan, Reason: "it was never placed"}
	}
	return Step{Act: Claim, Reason: fmt.Sprintf("generation %d has no pod yet", m.Generation)}
}

// unplaced is DecideMove where its pod has no sled.
func unplaced(m Move, gone bool, target *Target) Step {
	switch {
	case target.Deleting: // the API server binds no pod that is being deleted
		return Step{Act: GiveUp, Proof: fence.NeverRan, Reason: "no sled has taken it"}
	case !m.Wanted || gone:
		return Step{Act: Cancel, Reason: "the move is not wanted any longer"}
	case m.Pending >= maxPending:
		return Step{Act: Cancel, Reason: fmt.Sprintf("no sled has taken it within %v", maxPending)}
	}
	return Step{Act: Nothing}
}
