// Package controller is the part of a fleet in the cluster: it places VMs as pods and judges
// whether the end of a run is proven. It acts by what package fence proves.
package controller

import (
	"fmt"

	"github.com/sledctl/sledctl/fleet/fence"
)

// Machine is what is known of a VM.
type Machine struct {
	Running    bool        // it is wanted to run
	Deleting   bool        // it is wanted to be gone
	Generation int64       // the last that was raised
	Raised     int64       // the highest that was raised: a move that failed has had it
	Ended      int64       // the last whose end is proven and written down
	Proof      fence.Proof // of that
	// Kept is why no other generation may be started, although the last has ended: an earlier one
	// may still write to a volume that the next one would not take over.
	Kept string
}

// Pod is the pod of the last generation; nil: there is none.
type Pod struct {
	Sled     string // that it is bound to; empty: none
	Ended    bool   // its sled reports the end
	Deleting bool
	Silent   bool // its sled does not answer
	Lost     bool // and is stated to be lost
}

// Found is the highest generation of the VM that a sled reports to run.
type Found struct {
	Sled       string
	Generation int64
	Coming     bool // it is still on its way, from another sled
}

// Act is what the controller does about a VM.
type Act string

// The acts.
const (
	Nothing  Act = "nothing"
	Forget   Act = "forget"    // let the object go: nothing of the VM is left
	Raise    Act = "raise"     // raise the generation, by compare and swap
	Claim    Act = "claim"     // create the pod of the generation
	Conclude Act = "conclude"  // write down that the generation has ended, and by what proof
	Release  Act = "release"   // let the pod of a generation go that has ended
	Evict    Act = "evict"     // delete the pod, so that its sled ends the VM
	CatchUp  Act = "catch-up"  // take over the higher generation that a sled runs
	Wait     Act = "wait"      // for a proof
	PowerOff Act = "power-off" // have its sled powered off, and wait until its BMC reports that
	// CatchUpMove takes over a move to a sled that reports one.
	CatchUpMove Act = "catch-up-move"
)

// Step is an act, and why.
type Step struct {
	Act    Act
	Proof  fence.Proof // of Conclude
	Reason string
}

// Decide says what to do about a VM. The evidence is about the run of its last generation.
func Decide(m Machine, p *Pod, found Found, run fence.Run, e fence.Evidence) Step {
	wanted := m.Running && !m.Deleting
	uncounted := fence.Decide(fence.Run{}, fence.Evidence{Uncounted: e.Uncounted})
	over := m.Generation == m.Ended
	spins := over && p != nil && m.Proof == fence.Volumes && !p.Ended && !p.Lost // its sled is to end what may go on there
	switch {
	case found.Coming && found.Generation > m.Raised: // the VM may still be where it comes from
		return Step{Act: CatchUpMove, Reason: fmt.Sprintf("generation %d comes to sled %s, which this store has forgotten", found.Generation, found.Sled)}
	case !found.Coming && found.Generation > m.Generation:
		return Step{Act: CatchUp, Reason: fmt.Sprintf("sled %s runs generation %d, which this store has forgotten", found.Sled, found.Generation)}
	case spins && !p.Deleting:
		return Step{Act: Evict, Reason: fmt.Sprintf("sled %s is to end generation %d when it answers", p.Sled, m.Generation)}
	case spins && m.Deleting:
		return Step{Act: Wait, Reason: fmt.Sprintf("sled %s has not reported that generation %d has ended", p.Sled, m.Generation)}
	case over && p != nil && !spins:
		return Step{Act: Release, Reason: fmt.Sprintf("generation %d has ended", m.Generation)}
	case over && m.Deleting:
		return Step{Act: Forget}
	case over && !wanted:
		return Step{Act: Nothing}
	case (over || p == nil) && !uncounted.Proven():
		return Step{Act: Wait, Reason: uncounted.Reason}
	case over && m.Kept != "":
		return Step{Act: Wait, Reason: m.Kept}
	case over:
		return Step{Act: Raise, Reason: fmt.Sprintf("generation %d is to run", max(m.Generation, m.Raised)+1)}
	case p == nil && !wanted: // a pod that was there stays until the end is written down
		return Step{Act: Conclude, Proof: fence.NeverRan, Reason: "it was never placed"}
	case p == nil && m.Kept != "":
		return Step{Act: Wait, Reason: m.Kept}
	case p == nil:
		return Step{Act: Claim, Reason: fmt.Sprintf("generation %d has no pod yet", m.Generation)}
	case p.Ended:
		return Step{Act: Conclude, Proof: fence.Confirmed, Reason: fmt.Sprintf("sled %s reported the end", p.Sled)}
	case p.Sled == "" && p.Deleting: // the API server binds no pod that is being deleted
		return Step{Act: Conclude, Proof: fence.NeverRan, Reason: "its pod was deleted before it was bound"}
	case !wanted && !p.Deleting:
		return Step{Act: Evict, Reason: "it is not wanted to run"}
	case p.Silent:
		v := fence.Decide(run, e)
		switch {
		case v.Proven():
			return Step{Act: Conclude, Proof: v.Proof, Reason: v.Reason}
		case v.Revoke && !p.Deleting: // its sled starts no claim that is being deleted
			return Step{Act: Evict, Reason: v.Reason}
		case v.Power:
			return Step{Act: PowerOff, Reason: v.Reason}
		}
		return Step{Act: Wait, Reason: v.Reason}
	}
	return Step{Act: Nothing}
}
